#include "inspect/pool_facts.h"

#include <dirent.h>
#include <time.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "formats/proc/stat_text.h"
#include "os/file_io.h"

namespace clrsampler {
namespace {

constexpr int kMoments = 10;
constexpr timespec kBetween = {.tv_sec = 0, .tv_nsec = 100'000'000};
constexpr int kMaxPoolThreads = 32'768;
constexpr char kWorker[] = ".NET TP Worker";

void CountWorkers(const std::string& tasks, PoolMoment& moment) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(tasks.c_str()), closedir);
  if (directory == nullptr) return;
  for (int seen = 0; seen < kMaxPoolThreads; ++seen) {
    const dirent* entry = readdir(directory.get());
    if (entry == nullptr) break;
    if (entry->d_name[0] == '.') continue;
    const auto text = ReadWholeFile(absl::StrCat(tasks, "/", entry->d_name, "/stat"), 4096);
    const auto stat = text.ok() ? ParseStat(*text) : text.status();
    if (!stat.ok() || stat->comm != kWorker) continue;
    ++moment.seen;
    moment.waiting += stat->state != 'R';
  }
}

}  // namespace

std::optional<PoolFacts> ReadPoolFacts(const std::string& proc_root, uint32_t pid, RuntimeMemory& runtime) {
  PoolReader reader(runtime);
  const std::string tasks = absl::StrCat(proc_root, "/", pid, "/task");
  PoolFacts facts;
  for (int i = 0; i < kMoments; ++i) {
    if (i > 0) nanosleep(&kBetween, nullptr);
    const std::optional<PoolState> state = reader.Read();
    if (!state) return std::nullopt;  // one moment says too little
    PoolMoment moment{*state};
    CountWorkers(tasks, moment);
    facts.moments.push_back(moment);
    if (!state->leaves_work_lying()) break;
  }
  return facts;
}

}  // namespace clrsampler
