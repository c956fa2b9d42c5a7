#include "formats/profile/folded_reader.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "formats/names/folded_text.h"
#include "status/status.h"

namespace clrsampler {
namespace {

absl::Status BadLine(uint64_t number, absl::string_view why) {
  return WithHint(absl::DataLossError(absl::StrCat("line ", number, " ", why)),
                  "folded stacks have lines like `comm;root;leaf 42`");
}

bool IsNumber(absl::string_view text) {
  const size_t dot = text.find('.');
  const absl::string_view whole = text.substr(0, dot);
  const auto digits = [](absl::string_view part) {
    for (const char c : part) {
      if (!absl::ascii_isdigit(static_cast<unsigned char>(c))) return false;
    }
    return true;
  };
  return !whole.empty() && digits(whole) && (dot == absl::string_view::npos || digits(text.substr(dot + 1)));
}

std::optional<uint64_t> WeightOf(absl::string_view text) {
  uint64_t weight = 0;
  if (absl::SimpleAtoi(text, &weight)) return weight;
  double fraction = 0;
  if (!absl::SimpleAtod(text, &fraction) || !(fraction < static_cast<double>(kMaxTotalWeight))) return std::nullopt;
  return static_cast<uint64_t>(std::llround(fraction));
}

FrameIndex FrameOf(absl::string_view text, ProfileModelBuilder& builder) {
  ModelFrame frame;
  if (absl::ConsumeSuffix(&text, "_[k]")) {
    frame.kind = ModelFrameKind::kKernel;
  } else if (absl::ConsumeSuffix(&text, "_[j]")) {
    frame.kind = ModelFrameKind::kJit;
  } else if (absl::ConsumeSuffix(&text, "_[i]")) {
    frame.kind = ModelFrameKind::kInlined;
  }
  // Other names may end in a number. Names of native code keep their lines as a part of them.
  if (frame.kind == ModelFrameKind::kJit) {
    const FoldedLine split = SplitFoldedLine(text);
    frame.line = split.line;
    text = split.name;
  }
  frame.name = builder.String(text);
  return builder.Frame(frame);
}

absl::Status ReadLine(absl::string_view line, uint64_t number, ProfileModelBuilder& builder) {
  const size_t space = line.find_last_of(" \t");
  if (space == absl::string_view::npos || !IsNumber(line.substr(space + 1))) {
    return BadLine(number, "does not end in a space and a count");
  }
  const std::optional<uint64_t> weight = WeightOf(line.substr(space + 1));
  if (!weight) return BadLine(number, "has a count of 2^63 or more");
  absl::string_view stack = absl::StripTrailingAsciiWhitespace(line.substr(0, space));
  if (const size_t before = stack.find_last_of(" \t");
      before != absl::string_view::npos && IsNumber(stack.substr(before + 1))) {
    return WithHint(absl::InvalidArgumentError(absl::StrCat("line ", number, " has two counts: it is a difference")),
                    "give the two profiles that it was made of");
  }
  if (stack.empty()) return BadLine(number, "has no stack");
  const size_t comm_end = std::min(stack.find(';'), stack.size());
  ModelThread thread;
  thread.comm = builder.String(stack.substr(0, comm_end));
  NodeIndex node = kRootNode;
  absl::string_view rest = stack.substr(std::min(comm_end + 1, stack.size()));
  while (!rest.empty() && builder.ok()) {
    const size_t end = std::min(rest.find(';'), rest.size());
    node = builder.Node(node, FrameOf(rest.substr(0, end), builder));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  builder.Add({.thread = builder.Thread(thread), .stack = node, .weight = *weight});
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ProfileModel> ReadFolded(absl::string_view text) {
  ProfileModelBuilder builder(kReadLimits);
  uint64_t number = 0;
  while (!text.empty() && builder.ok()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const absl::string_view line = absl::StripTrailingAsciiWhitespace(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.empty()) continue;
    RETURN_IF_ERROR(ReadLine(line, number, builder));
  }
  return std::move(builder).Build();
}

}  // namespace clrsampler
