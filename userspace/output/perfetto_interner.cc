#include "output/perfetto_interner.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "formats/names/utf8.h"
#include "output/mapping_name.h"
#include "profile/lane_category.h"
#include "protozero/pbf_builder.hpp"

namespace clrsampler {
namespace {

using protozero::pbf_builder;

constexpr absl::string_view kNoStack = "[no stack]";

bool IsCode(const ModelFrame& frame) {
  switch (frame.kind) {
    case ModelFrameKind::kUnknown:
    case ModelFrameKind::kKernel:
    case ModelFrameKind::kNative:
    case ModelFrameKind::kJit:
    case ModelFrameKind::kR2r:
    case ModelFrameKind::kAot:
      return true;
    case ModelFrameKind::kRole:
    case ModelFrameKind::kMark:
    case ModelFrameKind::kInlined:
    case ModelFrameKind::kType:
      break;
  }
  return false;
}

// The bytes of a build id; "": it is none.
std::string BuildIdBytes(absl::string_view hexadecimal) {
  const bool valid = hexadecimal.size() % 2 == 0 && std::all_of(hexadecimal.begin(), hexadecimal.end(), [](char c) {
                       return absl::ascii_isxdigit(static_cast<unsigned char>(c));
                     });
  return valid ? absl::HexStringToBytes(hexadecimal) : "";
}

// The format's own word where it has one, else ours.
void AddKind(const ModelFrame& frame, absl::string_view name, pbf_builder<perfetto::Frame>& out) {
  using perfetto::FrameKind;
  const auto known = [&](FrameKind kind) { out.add_enum(perfetto::Frame::kKind, static_cast<int32_t>(kind)); };
  const std::optional<LaneCategory> category = LaneCategoryOf(frame.kind, name);
  if (!category) {
    out.add_string(perfetto::Frame::kKindText, std::string(ModelFrameKindText(frame.kind)));
    return;
  }
  switch (*category) {
    case LaneCategory::kOther:
      return;  // not known
    case LaneCategory::kNative:
      return known(FrameKind::kNative);
    case LaneCategory::kKernel:
      return known(FrameKind::kKernel);
    case LaneCategory::kManaged:
      return known(FrameKind::kJit);
    case LaneCategory::kCollection:
      return known(FrameKind::kGc);
    case LaneCategory::kPrecompiled:
    case LaneCategory::kCompilation:
    case LaneCategory::kWaiting:
    case LaneCategory::kIdle:
      out.add_string(perfetto::Frame::kKindText, std::string(LaneCategoryText(*category)));
  }
}

}  // namespace

void PerfettoInterner::Append(perfetto::Interned table, const std::string& entry) {
  pbf_builder<perfetto::Interned>(new_).add_message(table, entry);
}

uint64_t PerfettoInterner::Text(perfetto::Interned table, uint64_t number, absl::string_view text) {
  if (!IsNew(table, number)) return number;
  std::string entry;
  pbf_builder<perfetto::Text> out(entry);
  out.add_uint64(perfetto::Text::kId, number);
  out.add_bytes(perfetto::Text::kBytes, text.data(), text.size());
  Append(table, entry);
  return number;
}

uint64_t PerfettoInterner::Mapping(const ModelFrame& frame) {
  std::string name = MappingName(model_, frame);
  if (name.empty() || !IsCode(frame)) return 0;
  const auto [found, added] = mappings_.try_emplace({std::move(name), frame.build_id}, mappings_.size() + 1);
  const uint64_t number = found->second;
  if (!added) return number;
  std::string entry;
  pbf_builder<perfetto::Mapping> out(entry);
  out.add_uint64(perfetto::Mapping::kId, number);
  if (const std::string bytes = BuildIdBytes(model_.text(frame.build_id)); !bytes.empty()) {
    out.add_uint64(perfetto::Mapping::kBuildId,
                   Text(perfetto::Interned::kBuildIds, uint64_t{frame.build_id} + 1, bytes));
  }
  out.add_uint64(perfetto::Mapping::kPath,
                 Text(perfetto::Interned::kMappingPaths, number, WellFormedUtf8(found->first.first)));
  Append(perfetto::Interned::kMappings, entry);
  return number;
}

uint64_t PerfettoInterner::Frame(FrameIndex index) {
  const uint64_t number = uint64_t{index} + 1;
  if (!IsNew(perfetto::Interned::kFrames, number)) return number;
  const ModelFrame& frame = model_.frames[index];
  const absl::string_view name = model_.text(frame.name);
  std::string entry;
  pbf_builder<perfetto::Frame> out(entry);
  out.add_uint64(perfetto::Frame::kId, number);
  out.add_uint64(perfetto::Frame::kName,
                 Text(perfetto::Interned::kFunctionNames, uint64_t{frame.name} + 1, WellFormedUtf8(name)));
  if (frame.source_file != 0) {
    out.add_uint64(perfetto::Frame::kSource, Text(perfetto::Interned::kSourcePaths, uint64_t{frame.source_file} + 1,
                                                  WellFormedUtf8(model_.text(frame.source_file))));
  }
  if (frame.line != 0) {
    out.add_uint32(perfetto::Frame::kLine, frame.line);
  } else if (const uint64_t mapping = Mapping(frame); mapping != 0) {
    out.add_uint64(perfetto::Frame::kMapping, mapping);
    out.add_uint64(perfetto::Frame::kPlace, frame.address);
  }
  AddKind(frame, name, out);
  Append(perfetto::Interned::kFrames, entry);
  return number;
}

uint64_t PerfettoInterner::FrameOfNoStack() {
  const uint64_t number = model_.frames.size() + 1;
  std::string entry;
  pbf_builder<perfetto::Frame> out(entry);
  out.add_uint64(perfetto::Frame::kId, number);
  out.add_uint64(perfetto::Frame::kName, Text(perfetto::Interned::kFunctionNames, model_.strings.size() + 1, kNoStack));
  out.add_string(perfetto::Frame::kKindText, std::string(ModelFrameKindText(ModelFrameKind::kMark)));
  Append(perfetto::Interned::kFrames, entry);
  return number;
}

uint64_t PerfettoInterner::Callstack(NodeIndex leaf) {
  const uint64_t number = uint64_t{leaf} + 1;
  if (!IsNew(perfetto::Interned::kCallstacks, number)) return number;
  std::vector<uint64_t> frames;
  for (NodeIndex node = leaf; node != kRootNode; node = model_.nodes[node].parent) {
    frames.push_back(Frame(model_.nodes[node].frame));
  }
  std::reverse(frames.begin(), frames.end());
  if (frames.empty()) frames.push_back(FrameOfNoStack());
  std::string entry;
  pbf_builder<perfetto::Callstack> out(entry);
  out.add_uint64(perfetto::Callstack::kId, number);
  for (const uint64_t frame : frames) out.add_uint64(perfetto::Callstack::kFrames, frame);  // the schema packs nothing
  Append(perfetto::Interned::kCallstacks, entry);
  return number;
}

uint64_t PerfettoInterner::Task(uint32_t pid, uint32_t tid) {
  const auto [found, added] = tasks_.try_emplace({pid, tid}, tasks_.size() + 1);
  if (!added) return found->second;
  std::string entry;
  pbf_builder<perfetto::Task> out(entry);
  out.add_uint64(perfetto::Task::kId, found->second);
  out.add_uint32(perfetto::Task::kPid, pid);
  if (tid != 0) out.add_uint32(perfetto::Task::kTid, tid);
  Append(perfetto::Interned::kTasks, entry);
  return found->second;
}

}  // namespace clrsampler
