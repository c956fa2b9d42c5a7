#include "frames.h"

#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "clr/r2r_unwind_parts.h"
#include "formats/byte_reader.h"
#include "formats/unwind/eh_frame_writer.h"

namespace clrsampler {
namespace {

absl::StatusOr<EhFrame> FrameOf(const R2rImage& image, uint32_t method) {
  const RvaRange code = image.HotCodeOf(method);
  const std::optional<std::span<const std::byte>> bytes = image.pe().Bytes(code);
  if (!bytes) return absl::DataLossError("its code lies outside of the file");
  std::vector<FrameFunction> parts;
  for (const CodeUnwind& part : UnwindPartsOf(image, method)) {
    absl::StatusOr<std::vector<FrameStep>> steps =
        FrameStepsOfArm64(AsBytes(part.bytes), bytes->subspan(part.begin, part.end - part.begin));
    if (!steps.ok()) return steps.status();
    parts.push_back({part.begin, part.end, *std::move(steps)});
  }
  return WriteEhFrame(FrameMachine::kArm64, code.bytes, parts);
}

}  // namespace

int PrintFrames(const R2rImage& image) {
  if (image.pe().machine() != PeMachine::kArm64) {
    std::printf("not for arm64\n");
    return 1;
  }
  int problems = 0;
  for (uint32_t i = 0; i < image.function_count(); ++i) {
    if (image.Function(i)->part != R2rPart::kBody) continue;
    const RvaRange code = image.HotCodeOf(i);
    const absl::StatusOr<EhFrame> frame = FrameOf(image, i);
    const std::string text =
        frame.ok() ? absl::BytesToHexString(frame->bytes.substr(0, frame->bytes.size() - frame->header_bytes))
                   : frame.status().ToString();
    std::printf("%x %u %s\n", code.rva, code.bytes, text.c_str());
    problems += frame.ok() ? 0 : 1;
  }
  return problems;
}

}  // namespace clrsampler
