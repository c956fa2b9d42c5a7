// Cost of a name, paid once for each method: text of a jitdump record -> fields -> text of the frame. Time per name.
#include <fstream>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "formats/names/folded_text.h"
#include "formats/names/frame_text.h"
#include "formats/names/runtime_names.h"
#include "test_paths.h"

namespace clrsampler {
namespace {

std::vector<std::string> RealNames() {
  std::ifstream stream(TestData("names/runtime_names.txt"));
  std::vector<std::string> names;
  for (std::string line; std::getline(stream, line);) names.push_back(line);
  return names;
}

void BM_ParseAndRender(benchmark::State& state) {
  const std::vector<std::string> names = RealNames();
  const auto style = static_cast<NameStyle>(state.range(0));
  size_t i = 0;
  for (auto _ : state) {
    if (names.empty()) return state.SkipWithError("no names");
    std::string text = FrameText(ParseRuntimeName(names[i]), style);
    if (text.empty()) return state.SkipWithError("no text");
    benchmark::DoNotOptimize(text);
    if (++i == names.size()) i = 0;
  }
}
BENCHMARK(BM_ParseAndRender)->Arg(static_cast<int>(NameStyle::kShort))->Arg(static_cast<int>(NameStyle::kFull));

void BM_Parse(benchmark::State& state) {
  const std::vector<std::string> names = RealNames();
  size_t i = 0;
  for (auto _ : state) {
    if (names.empty()) return state.SkipWithError("no names");
    benchmark::DoNotOptimize(ParseRuntimeName(names[i]));
    if (++i == names.size()) i = 0;
  }
}
BENCHMARK(BM_Parse);

void BM_FoldedFrame(benchmark::State& state) {
  std::vector<std::string> texts;
  for (const std::string& name : RealNames()) texts.push_back(FrameText(ParseRuntimeName(name), NameStyle::kShort));
  size_t i = 0;
  for (auto _ : state) {
    if (texts.empty()) return state.SkipWithError("no names");
    benchmark::DoNotOptimize(FoldedFrame(texts[i], FrameSuffix::kManaged));
    if (++i == texts.size()) i = 0;
  }
}
BENCHMARK(BM_FoldedFrame);

}  // namespace
}  // namespace clrsampler
