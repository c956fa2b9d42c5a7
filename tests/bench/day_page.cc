// day_page FILE.html [STACKS]
//
// Writes the page of a day at 19 Hz on 8 CPUs that are always busy: 13.1 million samples of a service whose pool has 12
// threads. `html_page_test.py --day FILE.html` measures it. STACKS: how many different ones there are (20,000).
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "output/html.h"

namespace clrsampler {
namespace {

constexpr uint64_t kSeconds = 86'400, kHz = 19, kCpus = 8, kPeriodNs = 1'000'000'000 / kHz;
constexpr uint32_t kPoolThreads = 12;

// Stacks of a tree of frames that branches off anywhere, up to 60 deep.
std::vector<NodeIndex> Stacks(ProfileModelBuilder& builder, size_t count, std::mt19937& random) {
  constexpr ModelFrameKind kKinds[] = {ModelFrameKind::kJit, ModelFrameKind::kJit, ModelFrameKind::kR2r,
                                       ModelFrameKind::kNative, ModelFrameKind::kKernel};
  std::vector<FrameIndex> frames;
  for (uint32_t i = 0; i < 8000; ++i) {
    frames.push_back(builder.Frame({.kind = kKinds[i % std::size(kKinds)],
                                    .name = builder.String(absl::StrCat("Shop.Inventory.Type", i / 9, ".Method", i)),
                                    .module = builder.String(absl::StrCat("Shop", i % 40))}));
  }
  std::vector<NodeIndex> nodes = {kRootNode}, leaves;
  std::vector<uint32_t> depths = {0};
  while (leaves.size() < count) {
    const size_t from = random() % nodes.size();
    if (depths[from] > 60) continue;
    NodeIndex node = nodes[from];
    const uint32_t more = 1 + static_cast<uint32_t>(random() % 6);
    for (uint32_t i = 1; i <= more; ++i) {
      node = builder.Node(node, frames[random() % frames.size()]);
      nodes.push_back(node);
      depths.push_back(depths[from] + i);
    }
    leaves.push_back(node);
  }
  return leaves;
}

// By Zipf's law, which the stacks of real programs come near: the second one half as often as the first one.
class Zipf {
 public:
  explicit Zipf(size_t count) {
    double sum = 0;
    for (size_t i = 1; i <= count; ++i) sums_.push_back(sum += 1 / static_cast<double>(i));
  }
  size_t Draw(std::mt19937& random) const {
    const double at = std::generate_canonical<double, 32>(random) * sums_.back();
    return static_cast<size_t>(std::lower_bound(sums_.begin(), sums_.end(), at) - sums_.begin());
  }

 private:
  std::vector<double> sums_;
};

ProfileModel Day(size_t stack_count) {
  ProfileModelBuilder builder;
  std::mt19937 random(1);
  const StringIndex comm = builder.String("Shop.Api");
  std::vector<ThreadIndex> pool;
  for (uint32_t i = 0; i < kPoolThreads; ++i) {
    pool.push_back(builder.Thread(
        {.pid = 100, .tid = 120 + i, .comm = comm, .name = builder.String(absl::StrCat(".NET TP Worker ", i))}));
  }
  const ThreadIndex process = builder.Thread({.pid = 100, .comm = comm});
  const std::vector<NodeIndex> stacks = Stacks(builder, stack_count, random);
  const Zipf zipf(stacks.size());
  uint64_t samples = 0;
  for (uint64_t tick = 0; tick < kSeconds * kHz; ++tick) {
    // A quarter of the work differs from hour to hour. Nothing else goes on from one sample to the next.
    const size_t hour = tick / kHz / 3600;
    for (uint64_t cpu = 0; cpu < kCpus; ++cpu, ++samples) {
      const size_t drawn = zipf.Draw(random);
      const size_t stack = random() % 4 == 0 ? (drawn + hour * 997) % stacks.size() : drawn;
      const ThreadIndex thread = pool[(cpu + tick / (kHz * 40)) % kPoolThreads];
      builder.Add({.time_ns = tick * kPeriodNs + cpu * 1000, .thread = thread, .stack = stacks[stack]});
    }
  }
  const StringIndex name = builder.String("gen0 GC"), reason = builder.String("small object allocation");
  for (uint64_t second = 0; second < kSeconds; second += 1 + random() % 20) {
    const uint64_t duration_ns = 500'000 + random() % 8'000'000;
    builder.Event(
        {second * 1'000'000'000 + random() % 900'000'000, duration_ns, process, ModelEventKind::kPause, name, reason});
  }
  builder.meta().period_ns = kPeriodNs;
  builder.meta().duration_ns = kSeconds * 1'000'000'000;
  std::printf("%llu samples, %zu stacks\n", static_cast<unsigned long long>(samples), stacks.size());
  return *std::move(builder).Build();
}

int Write(const char* path, size_t stacks) {
  const ProfileModel model = Day(stacks);
  std::ofstream file(path, std::ios::binary);
  const auto begin = std::chrono::steady_clock::now();
  size_t bytes = 0;
  const absl::Status written = HtmlWriter().Write(model, [&](absl::string_view text) {
    bytes += text.size();
    file << text;
    return file ? absl::OkStatus() : absl::DataLossError("can't write");
  });
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::printf("%.1f MB in %.1f s\n", static_cast<double>(bytes) / 1e6, seconds.count());
  return written.ok() ? 0 : 1;
}

}  // namespace
}  // namespace clrsampler

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  return clrsampler::Write(argv[1], argc > 2 ? static_cast<size_t>(std::atol(argv[2])) : 20'000);
}
