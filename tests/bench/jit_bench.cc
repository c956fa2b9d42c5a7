// Indexing of jitdumps and perf maps by the tailers. Beside each is the bare scan that any reader has to pay: reads of
// 1 MiB, record or line boundaries, numbers, and an index pushed to a vector. Both read the same file from the page
// cache. Look-ups beside those of bcc's perf-map reader, when its library is there.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#ifdef CLRSAMPLER_HAS_BCC
#include <bcc/bcc_syms.h>
#endif

#include "absl/strings/str_cat.h"
#include "clr/jitdump_tailer.h"
#include "clr/perf_map_tailer.h"
#include "formats/jit/jitdump_writer.h"
#include "os/file_io.h"

namespace clrsampler {
namespace {

constexpr uint64_t kBase = 0x7f0000000000;
constexpr uint64_t kStep = 448;
constexpr size_t kCodeBytes = 400;
constexpr size_t kMethods = 100'000;
constexpr size_t kLines = 1'000'000;

// About 125 bytes, as an average .NET method has.
std::string Name(size_t i) {
  static constexpr const char* kSpaces[] = {"System.Collections.Generic", "Contoso.Orders.Pipeline",
                                            "Microsoft.Extensions.Caching", "Contoso.Billing"};
  return absl::StrCat("instance void [Contoso.Core] ", kSpaces[i % 4], ".Type", i / 20, "::Method", i,
                      "(class [Contoso.Core]Contoso.Handler`2<int32,Item", i % 977, ">)[OptimizedTier1]");
}

// Has no name any more, so that nothing is left behind.
class TempFile {
 public:
  TempFile() {
    const std::string path = absl::StrCat("/tmp/clrsampler-jit-bench-", getpid());
    fd_ = UniqueFd(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    unlink(path.c_str());
  }
  void Append(absl::string_view text) const { (void)WriteAll(fd_.get(), text).ok(); }
  absl::StatusOr<OpenedFile> Open() const {
    OpenedFile file{UniqueFd(open(absl::StrCat("/proc/self/fd/", fd_.get()).c_str(), O_RDONLY | O_CLOEXEC)), {}};
    fstat(file.fd.get(), &file.status);
    return file;
  }
  int fd() const { return fd_.get(); }

 private:
  UniqueFd fd_;
};

const TempFile& JitdumpFile() {
  static const TempFile* const file = [] {
    auto* made = new TempFile;
    JitdumpWriter writer;
    writer.Header({.version = 1, .elf_machine = 62, .pid = 1, .timestamp = 1});
    std::vector<std::byte> code(kCodeBytes);
    std::mt19937 random(7);
    for (std::byte& b : code) b = static_cast<std::byte>(random());
    for (size_t i = 0; i < kMethods; ++i) writer.Load(Name(i), 1'000'000 + i * 20'000, kBase + i * kStep, code);
    made->Append(writer.bytes());
    return made;
  }();
  return *file;
}

const TempFile& PerfMapFile() {
  static const TempFile* const file = [] {
    auto* made = new TempFile;
    std::string text;
    for (size_t i = 0; i < kLines; ++i) {
      absl::StrAppend(&text, absl::Hex(kBase + i * kStep), " ", absl::Hex(kCodeBytes), " ", Name(i), "\n");
    }
    made->Append(text);
    return made;
  }();
  return *file;
}

struct BareEntry {
  uint64_t start;
  uint32_t size;
  uint32_t name_bytes;
  uint64_t name_offset;
};

size_t BareScanOfJitdump(int fd, std::vector<BareEntry>& entries, std::string& names) {
  std::vector<char> buffer(1 << 20);
  size_t have = 0;
  size_t skip = 40;
  lseek(fd, 0, SEEK_SET);
  for (ssize_t got; (got = read(fd, buffer.data() + have, buffer.size() - have)) > 0;) {
    const char* at = buffer.data() + skip;
    const char* const end = buffer.data() + have + got;
    skip = 0;
    while (end - at >= 56) {
      uint32_t total;
      uint64_t address, code;
      std::memcpy(&total, at + 4, 4);
      std::memcpy(&address, at + 32, 8);
      std::memcpy(&code, at + 40, 8);
      if (total < 56 || end - at < total) break;
      const size_t length = strnlen(at + 56, total - 56);
      entries.push_back({address, static_cast<uint32_t>(code), static_cast<uint32_t>(length), names.size()});
      names.append(at + 56, length);
      at += total;
    }
    have = static_cast<size_t>(end - at);
    std::memmove(buffer.data(), at, have);
  }
  return entries.size();
}

uint64_t BareHex(const char*& at, const char* end) {
  uint64_t value = 0;
  for (; at < end; ++at) {
    const unsigned c = static_cast<unsigned char>(*at);
    unsigned digit = c - '0';
    if (digit > 9) {
      digit = (c | 32) - 'a' + 10;
      if (digit < 10 || digit > 15) break;
    }
    value = value << 4 | digit;
  }
  return value;
}

size_t BareScanOfPerfMap(int fd, std::vector<BareEntry>& entries) {
  std::vector<char> buffer(1 << 20);
  size_t have = 0, total = 0;
  lseek(fd, 0, SEEK_SET);
  for (ssize_t got; (got = read(fd, buffer.data() + have, buffer.size() - have)) > 0;) {
    const char* at = buffer.data();
    const char* const end = at + have + got;
    while (const char* line_end = static_cast<const char*>(std::memchr(at, '\n', static_cast<size_t>(end - at)))) {
      const char* field = at;
      BareEntry entry{};
      entry.start = BareHex(field, line_end);
      if (field < line_end) ++field;
      entry.size = static_cast<uint32_t>(BareHex(field, line_end));
      if (field < line_end) ++field;
      entry.name_offset = total + static_cast<size_t>(field - buffer.data());
      entry.name_bytes = static_cast<uint32_t>(line_end - field);
      entries.push_back(entry);
      at = line_end + 1;
    }
    total += static_cast<size_t>(at - buffer.data());
    have = static_cast<size_t>(end - at);
    std::memmove(buffer.data(), at, have);
  }
  return entries.size();
}

OpenFileState SomebodyWrites(uint64_t, uint64_t) { return OpenFileState::kOpen; }
bool Ours(const TailedFile&) { return true; }
constexpr MonotonicTime kNow{1'000'000'000'000};
constexpr size_t kNoBudget = size_t{1} << 40;

void IndexJitdump(JitdumpTailer& tailer, std::vector<std::byte>& scratch) {
  tailer.Poll([] { return JitdumpFile().Open(); }, SomebodyWrites, {}, true, kNow, kNoBudget, scratch);
}

void IndexPerfMap(PerfMapTailer& tailer, std::vector<std::byte>& scratch) {
  tailer.Poll([] { return PerfMapFile().Open(); }, Ours, true, kNow, FakeClock(), kNoBudget, scratch);
}

void BM_JitdumpBareScan100k(benchmark::State& state) {
  JitdumpFile();
  for (auto _ : state) {
    std::vector<BareEntry> entries;
    std::string names;
    if (BareScanOfJitdump(JitdumpFile().fd(), entries, names) != kMethods) state.SkipWithError("lost methods");
  }
}
BENCHMARK(BM_JitdumpBareScan100k)->Unit(benchmark::kMillisecond);

void BM_JitdumpTailer100k(benchmark::State& state) {
  JitdumpFile();
  for (auto _ : state) {
    std::vector<std::byte> scratch;
    JitdumpTailer tailer;
    IndexJitdump(tailer, scratch);
    const size_t probe = 77'777;
    const MethodAnswer answer = tailer.methods().Query(kBase + probe * kStep + 13, kNow);
    if (tailer.methods().methods() != kMethods || tailer.ReadName(answer.name) != Name(probe)) {
      state.SkipWithError("lost methods");
    }
  }
}
BENCHMARK(BM_JitdumpTailer100k)->Unit(benchmark::kMillisecond);

void BM_PerfMapBareScan1M(benchmark::State& state) {
  PerfMapFile();
  for (auto _ : state) {
    std::vector<BareEntry> entries;
    if (BareScanOfPerfMap(PerfMapFile().fd(), entries) != kLines) state.SkipWithError("lost lines");
  }
}
BENCHMARK(BM_PerfMapBareScan1M)->Unit(benchmark::kMillisecond);

void BM_PerfMapTailer1M(benchmark::State& state) {
  PerfMapFile();
  for (auto _ : state) {
    std::vector<std::byte> scratch;
    PerfMapTailer tailer;
    IndexPerfMap(tailer, scratch);
    const size_t probe = 777'777;
    const MethodAnswer answer = tailer.methods().Query(kBase + probe * kStep + 13, kNow);
    if (tailer.methods().methods() != kLines || tailer.ReadName(answer.name) != Name(probe)) {
      state.SkipWithError("lost lines");
    }
  }
}
BENCHMARK(BM_PerfMapTailer1M)->Unit(benchmark::kMillisecond);

// Random addresses, so that the caches are as cold as in real use.
void LookUp(benchmark::State& state, MethodMap& methods, size_t count) {
  std::mt19937_64 random(7);
  std::vector<uint64_t> picks(4096);
  for (uint64_t& pick : picks) pick = random() % count;
  size_t turn = 0;
  for (auto _ : state) {
    const uint64_t start = kBase + picks[turn++ % picks.size()] * kStep;
    const MethodAnswer answer = methods.Query(start + kCodeBytes / 2, kNow);
    if (answer.start != start) state.SkipWithError("wrong method");
  }
  state.counters["bytes_per_method"] = static_cast<double>(methods.bytes()) / static_cast<double>(count);
}

void BM_LookUpAmong100k(benchmark::State& state) {
  std::vector<std::byte> scratch;
  JitdumpTailer tailer;
  IndexJitdump(tailer, scratch);
  LookUp(state, tailer.methods(), kMethods);
}
BENCHMARK(BM_LookUpAmong100k);

void BM_LookUpAmong1M(benchmark::State& state) {
  std::vector<std::byte> scratch;
  PerfMapTailer tailer;
  IndexPerfMap(tailer, scratch);
  LookUp(state, tailer.methods(), kLines);
}
BENCHMARK(BM_LookUpAmong1M);

void BM_MethodNameHash(benchmark::State& state) {
  std::vector<std::string> names;
  for (size_t i = 0; i < 1024; ++i) names.push_back(Name(i * 977));
  size_t turn = 0;
  for (auto _ : state) benchmark::DoNotOptimize(MethodNameHash(names[turn++ % names.size()]));
}
BENCHMARK(BM_MethodNameHash);

#ifdef CLRSAMPLER_HAS_BCC
// The same look-ups, of a name each, in the perf map of this process. bcc answers with the name's text, which it keeps
// in memory; beside it, the tailer with a text read from the file at every look-up, as for names that no sample hit
// yet.
std::string OwnPerfMap() { return absl::StrCat("/tmp/perf-", getpid(), ".map"); }

void BM_BccLookUpAmong1M(benchmark::State& state) {
  {
    UniqueFd copy(open(OwnPerfMap().c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    std::vector<char> buffer(1 << 20);
    lseek(PerfMapFile().fd(), 0, SEEK_SET);
    for (ssize_t got; (got = read(PerfMapFile().fd(), buffer.data(), buffer.size())) > 0;) {
      (void)WriteAll(copy.get(), {buffer.data(), static_cast<size_t>(got)}).ok();
    }
  }
  void* const cache = bcc_symcache_new(getpid(), nullptr);
  std::mt19937_64 random(7);
  std::vector<uint64_t> picks(4096);
  for (uint64_t& pick : picks) pick = random() % kLines;
  size_t turn = 0;
  bcc_symbol symbol{};
  (void)bcc_symcache_resolve_no_demangle(cache, kBase, &symbol);  // reads the map
  for (auto _ : state) {
    const size_t pick = picks[turn++ % picks.size()];
    if (bcc_symcache_resolve_no_demangle(cache, kBase + pick * kStep + kCodeBytes / 2, &symbol) != 0) {
      state.SkipWithError("no name");
    }
  }
  if (symbol.name == nullptr || Name(picks[(turn - 1) % picks.size()]) != symbol.name)
    state.SkipWithError("wrong name");
  bcc_free_symcache(cache, getpid());
  unlink(OwnPerfMap().c_str());
}
BENCHMARK(BM_BccLookUpAmong1M);

void BM_LookUpWithTextAmong1M(benchmark::State& state) {
  std::vector<std::byte> scratch;
  PerfMapTailer tailer;
  IndexPerfMap(tailer, scratch);
  std::mt19937_64 random(7);
  std::vector<uint64_t> picks(4096);
  for (uint64_t& pick : picks) pick = random() % kLines;
  size_t turn = 0;
  for (auto _ : state) {
    const size_t pick = picks[turn++ % picks.size()];
    const MethodAnswer answer = tailer.methods().Query(kBase + pick * kStep + kCodeBytes / 2, kNow);
    if (!tailer.ReadName(answer.name).has_value()) state.SkipWithError("no name");
  }
}
BENCHMARK(BM_LookUpWithTextAmong1M);
#endif

// A target that wants to be expensive: everything overlaps everything, and the question is about the past.
void BM_LookUpInHostileMap(benchmark::State& state) {
  MethodMap methods({.claims_earlier = true});
  for (uint64_t i = 0; i < 1'000'000; ++i) {
    methods.Add(kBase + i, 0xffffffff, {i, static_cast<uint32_t>(i)}, i % 2 == 0,
                {{1'000'000 + i * 10}, {1'000'005 + i * 10}});
  }
  for (auto _ : state) benchmark::DoNotOptimize(methods.Query(kBase + 2'000'000, {1'000'001}));
}
BENCHMARK(BM_LookUpInHostileMap);

}  // namespace
}  // namespace clrsampler
