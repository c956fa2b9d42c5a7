// A made-up profile for tests and benchmarks of writers: threads of some processes that run methods of all kinds.
#ifndef CLRSAMPLER_TESTS_UNIT_OUTPUT_MADE_UP_PROFILE_H_
#define CLRSAMPLER_TESTS_UNIT_OUTPUT_MADE_UP_PROFILE_H_

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/profile/profile_model.h"

namespace clrsampler::test_support {

struct MadeUpOptions {
  size_t samples = 1000;
  size_t stacks = 100;   // distinct, about
  size_t methods = 300;  // 3000 is what a large program shows
  size_t depth = 30;     // frames of most stacks
  size_t processes = 3;
  size_t threads = 4;  // of each
  bool times = true;
  bool places = true;  // addresses and sizes of functions
  bool lines = false;  // of managed code, two of each method; and files of source text
  size_t events = 0;
  uint32_t seed = 1;
};

// Stacks branch as those of programs do: they share their outer frames, and differ in the inner ones.
inline ProfileModel MadeUpProfile(const MadeUpOptions& options = {}) {
  std::mt19937 random(options.seed);
  const auto below = [&](size_t limit) { return static_cast<size_t>(random() % limit); };
  ProfileModelBuilder builder;
  ProfileMeta& meta = builder.meta();
  meta.period_ns = 10101010;
  meta.start_unix_ns = 1'790'000'000'123'456'789;
  meta.start_monotonic_ns = 4'000'000'000;
  meta.duration_ns = 12'500'000'000;
  meta.host = "build7";
  meta.command = "dotnet Shop.dll --fast";
  meta.pids = {4711, 4712};
  meta.creator = "clrsampler 0.1.0";
  meta.account_json =
      "{\n  \"samples\": {\n    \"taken\": 7,\n    \"lost\": {}\n  },\n  \"self\": [\n    0.25,\n    null,\n    -3\n  "
      "]\n}\n";

  std::vector<FrameIndex> frames;
  for (size_t number = 0; number < options.methods; ++number) {
    ModelFrame frame;
    const bool managed = number % 8 >= 3 && number % 8 <= 5;
    const size_t i = options.lines && managed ? number / 16 * 16 + number % 8 : number;
    if (options.lines && managed) {
      frame.source_file = builder.String(absl::StrCat("/src/Shop", i % 7, ".cs"));
      frame.line = static_cast<uint32_t>(number + 1);
      frame.column = static_cast<uint32_t>(i % 3 == 0 ? 0 : i % 40);
      frame.line_kind = i % 2 == 0 ? LineKind::kExact : LineKind::kOptimised;
      builder.Source(frame.source_file, i % 3 == 0 ? 0 : builder.String(absl::StrCat("https://example.org/", i)),
                     i % 5 == 0 ? absl::StrCat("class Shop", i, "\n{\n}\n") : "");
    }
    frame.kind = static_cast<ModelFrameKind>(
        i % static_cast<size_t>(ModelFrameKind::kInlined));  // none of those: pprof has its own way
    frame.name =
        builder.String(absl::StrCat("Shop.Orders.Handlers", i % 40, "<int>.Method", i, "+<lambda_", i % 3, ">"));
    if (i % 3 == 0) frame.system_name = builder.String(absl::StrCat("instance void [Shop] Shop::M", i, "(int32)"));
    if (i % 5 != 0) frame.source = builder.String(i % 2 == 0 ? "jitdump" : "r2r-image");
    if (frame.kind != ModelFrameKind::kKernel && frame.kind != ModelFrameKind::kUnknown) {
      frame.module = builder.String(absl::StrCat("Shop", i % 7));
    }
    if (frame.kind == ModelFrameKind::kNative) {
      frame.module_path = builder.String(absl::StrCat("/usr/lib/", "Shop", i % 7));
      frame.build_id = builder.String("c0ffee00");
      if (i % 2 == 0) frame.file_hash = builder.String(absl::StrCat("f00d", i % 7));
    }
    if (options.places && i % 4 == 0) {
      frame.address = 0x7fff00000000 + 64 * i;
      frame.size = static_cast<uint32_t>(16 + i);
    }
    if (frame.kind == ModelFrameKind::kJit) frame.tier = builder.String(i % 2 == 0 ? "OptimizedTier1" : "QuickJitted");
    frames.push_back(builder.Frame(frame));
  }
  std::vector<NodeIndex> stacks = {kRootNode};
  std::vector<std::vector<FrameIndex>> paths = {{}};
  while (stacks.size() < options.stacks) {
    std::vector<FrameIndex> path = paths[below(paths.size())];
    path.resize(std::min(path.size(), below(options.depth)));
    for (size_t length = options.depth - below(options.depth / 3 + 1); path.size() < length;) {
      path.push_back(frames[below(frames.size())]);
    }
    stacks.push_back(builder.Stack(path));
    paths.push_back(std::move(path));
  }
  std::vector<ThreadIndex> threads;
  for (size_t process = 0; process < options.processes; ++process) {
    for (size_t i = 0; i < options.threads; ++i) {
      ModelThread thread;
      thread.pid = static_cast<uint32_t>(4711 + process * 100);
      thread.tid = static_cast<uint32_t>(thread.pid + i);
      thread.comm = builder.String(absl::StrCat("web", process));
      thread.name = builder.String(i == 0 ? "main" : ".NET TP Worker");
      if (process % 2 == 0) thread.container_id = builder.String("0123456789abcdef");
      threads.push_back(builder.Thread(thread));
    }
  }
  for (size_t i = 0; i < options.samples; ++i) {
    ModelSample sample;
    if (options.times) {
      sample.time_ns = i * 1'000'037;
      sample.state = i % 50 == 0 ? SampleState::kPaused : SampleState::kNone;
    }
    sample.thread = threads[below(threads.size())];
    sample.stack = stacks[i < stacks.size() ? i : below(stacks.size())];
    builder.Add(sample);
  }
  for (size_t i = 0; options.times && i < options.events; ++i) {
    builder.Event({.time_ns = i * 7'000'011,
                   .duration_ns = i % 4 * 1'000'003,
                   .thread = threads[below(threads.size())],
                   .kind = static_cast<ModelEventKind>(i % kModelEventKindCount),
                   .name = builder.String(absl::StrCat("event ", i % 5)),
                   .detail = i % 3 == 0 ? 0 : builder.String("why")});
  }
  return *std::move(builder).Build();
}

}  // namespace clrsampler::test_support

#endif  // CLRSAMPLER_TESTS_UNIT_OUTPUT_MADE_UP_PROFILE_H_
