// Samples of real programs, as the kernel gave them, with all that unwinding them needs (tests/testdata/stacks).
#ifndef CLRSAMPLER_TESTS_BENCH_RECORDED_SAMPLES_H_
#define CLRSAMPLER_TESTS_BENCH_RECORDED_SAMPLES_H_

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "formats/byte_reader.h"
#include "os/file_io.h"
#include "test_paths.h"
#include "unwind/stack_recording.h"
#include "unwind/stack_unwinder.h"

namespace clrsampler {

struct RecordedSamples {
  struct Sample {
    RawStack raw;
    const UserStack* expected;
    CodeFinder* code;
  };
  std::vector<StackRecording> files;
  std::vector<RecordedCode> code;
  std::vector<Sample> samples;
  size_t frames = 0;
};

// Those of programs whose name ends like this; all for "".
inline RecordedSamples* LoadRecordedSamples(const std::string& ending) {
  auto* all = new RecordedSamples;  // outlives the benchmarks
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(TestData("stacks/clean"))) {
    const std::string name = entry.path().stem();
    if (name.ends_with(ending)) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) {
    const auto bytes = ReadWholeFile(path, 16 << 20);
    auto recording =
        bytes.ok() ? StackRecording::Parse(AsBytes(*bytes)) : absl::StatusOr<StackRecording>(bytes.status());
    if (recording.ok()) all->files.push_back(*std::move(recording));
  }
  for (const StackRecording& recording : all->files) all->code.emplace_back(recording);
  for (size_t i = 0; i < all->files.size(); ++i) {
    for (const RecordedStack& stack : all->files[i].stacks) {
      auto raw = RawStack::Parse(std::as_bytes(std::span(stack.record)));
      if (!raw.ok()) continue;
      all->frames += stack.result.frames.size();
      all->samples.push_back({*raw, &stack.result, &all->code[i]});
    }
  }
  return all;
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_TESTS_BENCH_RECORDED_SAMPLES_H_
