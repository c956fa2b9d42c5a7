#include "output/exception_summary.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "output/seen_share.h"
#include "output/summary.h"

namespace clrsampler {

std::vector<ThrowingStack> ThrowingStacks(const FrameTable& frames, const StackTable& stacks, size_t rows,
                                          size_t frames_each) {
  // Bodies of one method have frames of their own, which read alike.
  std::map<std::string, ThrowingStack> by_text;
  for (StackId id = 0; id < stacks.size(); ++id) {
    const std::span<const FrameId> stack = stacks.stack(id).frames;
    if (stack.empty() || stacks.count(id) == 0) continue;
    const std::span<const FrameId> callers = stack.first(stack.size() - 1);
    const std::span<const FrameId> innermost = callers.last(std::min(frames_each, callers.size()));
    std::string text = frames.at(stack.back()).text;
    for (const FrameId frame : innermost) {
      const Frame& one = frames.at(frame);
      absl::StrAppend(&text, "\n", one.text, "\n", one.place.file, ":", one.place.line);
    }
    ThrowingStack& alike = by_text[text];
    if (alike.count == 0) alike = {frames.at(stack.back()).text, 0, {innermost.rbegin(), innermost.rend()}};
    alike.count += stacks.count(id);
  }
  std::vector<ThrowingStack> sorted;
  sorted.reserve(by_text.size());
  for (auto& [text, stack] : by_text) sorted.push_back(std::move(stack));
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.count > b.count; });
  if (sorted.size() > rows) sorted.resize(rows);
  return sorted;
}

std::string SeenExceptionsText(const Account& account) {
  if (account.exceptions.empty()) return "";
  const uint64_t thrown = CountOf(account.exceptions, "thrown");
  const uint64_t told = std::max(CountOf(account.exceptions, "estimated"), thrown);
  std::string text = "all were seen";
  if (told > thrown) {
    text = absl::StrFormat(
        "%.1f %% of them were seen, the rest is estimated by CPU time: the probes are detached where they would cost "
        "more than --hook-budget",
        100.0 * static_cast<double>(thrown) / static_cast<double>(told));
  }
  uint64_t rethrown = 0;
  for (const auto& [type, count] : account.rethrown) rethrown += count;
  if (rethrown > 0) absl::StrAppend(&text, "; ", rethrown, rethrown == 1 ? " was" : " were", " thrown again");
  return text;
}

std::string ThrowingStacksText(const FrameTable& frames, const std::vector<ThrowingStack>& stacks) {
  std::string text;
  for (const ThrowingStack& stack : stacks) {
    absl::StrAppendFormat(&text, "%10d  %s\n", stack.count, PrintableText(stack.type));
    for (const FrameId id : stack.frames) {
      const Frame& frame = frames.at(id);
      absl::StrAppendFormat(&text, "%14s%s", "", PrintableText(frame.text));
      if (frame.place.line != 0) absl::StrAppend(&text, "  ", PrintableText(frame.place.file), ":", frame.place.line);
      absl::StrAppend(&text, "\n");
    }
  }
  return text;
}

}  // namespace clrsampler
