#include "formats/elf/code_rows.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "formats/elf/abstract_state.h"
#include "formats/elf/code_areas.h"
#include "formats/elf/control_flow_graph.h"
#include "formats/elf/data_flow.h"
#include "formats/elf/function_starts.h"
#include "formats/elf/reachability.h"
#include "formats/elf/return_analysis.h"
#include "formats/x64/instruction.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr int kPasses = 6;  // each learns one more level of functions that do not return

// The result of the last pass, and the functions that are believed from it.
struct Analysis {
  const CodeAreas& code;
  ControlFlowGraph graph;
  CallKnowledge known;
  std::vector<bool> refused;    // by function
  std::vector<uint8_t> proved;  // by index of code
};

Analysis Analyze(const ElfImage& image, const CodeAreas& code, const FunctionStarts& starts) {
  Analysis analysis{code, {}, {}, {}, {}};
  size_t known = 0;
  for (int pass = 0; pass < kPasses; ++pass) {
    analysis.graph = {};  // there is never more than one
    analysis.graph = FollowCode(image, code, starts, analysis.known);
    AnalyzeReturns(analysis.graph, analysis.known);
    if (analysis.known.no_return.size() == known) break;
    known = analysis.known.no_return.size();
  }
  RefuseOverlaps(code, analysis.graph);
  analysis.refused = RefusedFunctions(analysis.graph);
  analysis.proved = Prove(code, analysis.graph, analysis.known, analysis.refused);
  return analysis;
}

void AddBounds(const Analysis& analysis, std::vector<CodeFunction>& bounds) {
  const ControlFlowGraph& graph = analysis.graph;
  std::vector<uint8_t> sharing(graph.functions.size());
  for (size_t i = 0; i < graph.functions.size(); ++i) {
    uint8_t& count = sharing[graph.Shared(static_cast<uint32_t>(i))];
    if (count < 2) ++count;
  }
  for (size_t i = 0; i < graph.functions.size(); ++i) {
    const FlowFunction& function = graph.functions[i];
    const uint32_t whole = graph.Shared(static_cast<uint32_t>(i));
    const bool sure = !function.guessed || (analysis.proved[function.start] & kFromBelow) != 0;
    if (analysis.refused[whole] || sharing[whole] > 1 || !sure) continue;
    const CodeArea& area = analysis.code.AreaOf(function.start);
    CodeIndex end = function.start;
    while (area.Contains(end) && graph.Reached(end) && graph.Shared(graph.function_of[end]) == whole) {
      const auto instruction = area.Decode(end);
      if (!instruction) break;
      end += instruction->bytes;
    }
    if (end == function.start) continue;
    const uint64_t start = area.address + (function.start - area.first);
    bounds.push_back({{start}, {start + (end - function.start)}});
  }
  std::sort(bounds.begin(), bounds.end(),
            [](const CodeFunction& a, const CodeFunction& b) { return a.start < b.start; });
}

void AddRow(uint64_t address, uint8_t bytes, const CfiRow& row, CodeRows& result) {
  result.row_bytes += bytes;
  if (!result.rows.empty() && result.rows.back().end.value == address && result.rows.back().row == row) {
    result.rows.back().end.value += bytes;
  } else {
    result.rows.push_back({{address}, {address + bytes}, row});
  }
}

void AddRowsOfArea(const Analysis& analysis, const CodeArea& area, WaysOut& ways_out, CodeRows& result) {
  const ControlFlowGraph& graph = analysis.graph;
  CodeIndex end = area.first;  // of the instruction before
  for (CodeIndex at = area.first; area.Contains(at); ++at) {
    if (!graph.Reached(at) || analysis.refused[graph.Shared(graph.function_of[at])]) continue;
    const auto instruction = area.Decode(at);
    if (!instruction || at < end) continue;  // inside another one: refused, if both were followed
    const AbstractState& state = graph.StateAt(at);
    std::optional<CfiRow> row;
    if (state.outermost || (state.depth_known && state.depth == 0)) {
      if (!ways_out.LeadsOut(at)) row = OutermostRow();
    } else {
      row = RowOf(state);
    }
    end = at + instruction->bytes;
    if (row && analysis.proved[at] != 0) AddRow(area.AddressOf(at), instruction->bytes, *row, result);
  }
}

CodeRows MakeRows(const Analysis& analysis) {
  CodeRows result;
  result.code_bytes = analysis.code.bytes();
  result.functions = analysis.graph.functions.size();
  for (size_t i = 0; i < result.functions; ++i) {
    if (analysis.refused[analysis.graph.Shared(static_cast<uint32_t>(i))]) ++result.refused;
  }
  AddBounds(analysis, result.bounds);
  WaysOut ways_out(analysis.code, analysis.graph, analysis.known);
  for (const CodeArea& area : analysis.code.all()) AddRowsOfArea(analysis, area, ways_out, result);
  return result;
}

}  // namespace

absl::StatusOr<CodeRows> RowsOfCode(const ElfImage& image) {
  if (image.machine() != ElfMachine::kX64) return absl::UnimplementedError("instructions of this machine are not read");
  ASSIGN_OR_RETURN(const CodeAreas code, CodeAreas::Of(image, CodeRows::kMaxCodeBytes));
  const FunctionStarts starts = FunctionStartsOf(image, code);
  if (starts.symbols.empty()) return absl::NotFoundError("no function is known to begin in its code");
  return MakeRows(Analyze(image, code, starts));
}

}  // namespace clrsampler
