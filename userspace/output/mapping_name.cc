#include "output/mapping_name.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "formats/profile/pprof_fields.h"

namespace clrsampler {

std::string MappingName(const ProfileModel& model, const ModelFrame& frame) {
  const absl::string_view module = model.text(frame.module);
  switch (frame.kind) {
    case ModelFrameKind::kKernel:
      if (module.empty()) return std::string(pprof::kKernelMapping);
      break;
    case ModelFrameKind::kNative:
      if (frame.module_path != 0) return std::string(model.text(frame.module_path));
      if (!module.empty()) return std::string(module);
      break;
    case ModelFrameKind::kUnknown:
      return std::string(module);
    case ModelFrameKind::kJit:
    case ModelFrameKind::kR2r:
    case ModelFrameKind::kAot:
    case ModelFrameKind::kRole:
    case ModelFrameKind::kMark:
    case ModelFrameKind::kType:
    case ModelFrameKind::kInlined:
      break;
  }
  return absl::StrCat("[", ModelFrameKindText(frame.kind), "]", module.empty() ? "" : " ", module);
}

}  // namespace clrsampler
