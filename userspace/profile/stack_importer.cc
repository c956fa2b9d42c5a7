#include "profile/stack_importer.h"

namespace clrsampler {
namespace {

ModelFrameKind ImportedKind(FrameKind kind) {
  switch (kind) {
    case FrameKind::kKernel:
      return ModelFrameKind::kKernel;
    case FrameKind::kNative:
      return ModelFrameKind::kNative;
    case FrameKind::kJit:
      return ModelFrameKind::kJit;
    case FrameKind::kR2r:
      return ModelFrameKind::kR2r;
    case FrameKind::kAot:
      return ModelFrameKind::kAot;
    case FrameKind::kMark:
      return ModelFrameKind::kMark;
    case FrameKind::kRole:
      return ModelFrameKind::kRole;
    case FrameKind::kType:
      return ModelFrameKind::kType;
  }
  return ModelFrameKind::kUnknown;
}

}  // namespace

NodeIndex StackImporter::Stack(StackId id) {
  std::optional<NodeIndex>& node = node_of_[id];
  if (!node) {
    node = kRootNode;
    for (const FrameId frame : stacks_.stack(id).frames) node = builder_.Node(*node, Frame(frame));
  }
  return *node;
}

FrameIndex StackImporter::Frame(FrameId id) {
  const auto [found, added] = frame_of_.try_emplace(id);
  if (!added) return found->second;
  const clrsampler::Frame& frame = frames_.at(id);
  ModelFrame copy;
  copy.kind = ImportedKind(frame.kind);
  copy.name = builder_.String(frame.text);
  if (frame.symbol != frame.text) copy.system_name = builder_.String(frame.symbol);
  if (frame.named()) copy.source = builder_.String(NameSourceText(frame.source));
  copy.module = builder_.String(frame.module);
  copy.module_path = builder_.String(frame.image->path);
  copy.build_id = builder_.String(frame.image->build_id);
  copy.file_hash = builder_.String(frame.image->file_hash);
  copy.tier = builder_.String(frame.tier);
  copy.address = frame.address;
  copy.size = frame.size;
  copy.source_file = builder_.String(frame.place.file);
  copy.line = frame.place.line;
  copy.column = frame.place.column;
  copy.line_kind = frame.place.kind;
  found->second = builder_.Frame(copy);
  return found->second;
}

}  // namespace clrsampler
