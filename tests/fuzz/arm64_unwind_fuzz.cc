// An .xdata record of arm64 and the code behind it: {u8 bytes of code, code, record}.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "formats/byte_reader.h"
#include "formats/unwind/arm64_unwind.h"
#include "formats/unwind/eh_frame_writer.h"
#include "formats/unwind/unwind_bytes.h"

namespace {

using namespace clrsampler;  // NOLINT(google-build-using-namespace): one file, one purpose

constexpr size_t kMostCodes = 255 * 4;  // bytes of codes that a record has room for

void Require(bool condition) {
  if (!condition) __builtin_trap();
}

// Reading piece by piece gives the same as parsing as a whole.
void CheckBytes(std::span<const std::byte> record, const absl::StatusOr<Arm64UnwindInfo>& info) {
  const auto read = [&](uint64_t at, std::span<std::byte> into) {
    if (at > record.size() || into.size() > record.size() - at) return false;
    std::copy_n(record.data() + at, into.size(), into.data());
    return true;
  };
  const auto bytes = Arm64UnwindBytes(read, 0);
  Require(bytes.ok() == (info.ok() && info->bytes <= kMaxUnwindPartBytes));
  if (bytes.ok()) Require(*Arm64UnwindInfo::Parse(AsBytes(*bytes)) == *info);
}

// Steps fit a function that is as long as its prologue, with a few instructions that have no code, and can be written.
void CheckSteps(std::span<const std::byte> record, std::span<const std::byte> code, const Arm64UnwindInfo& info) {
  auto steps = FrameStepsOfArm64(record, code);
  if (!steps.ok()) return;
  const auto end = static_cast<uint32_t>(4 * info.codes.size() + 4 + 32);
  uint32_t least = 0;
  for (const FrameStep& step : *steps) {
    Require(step.offset >= least && step.offset < end && step.offset % 4 == 0);
    Require(step.rule != FrameRule::kSaved || (step.value < 0 && step.value % 8 == 0));
    Require(step.rule != FrameRule::kCfa || step.value >= 0);
    least = step.offset;
  }
  const FrameFunction function{0, end, *std::move(steps)};
  Require(WriteEhFrame(FrameMachine::kArm64, end, {&function, 1}).ok());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const auto bytes = std::as_bytes(std::span(data + 1, size - 1));
  const auto code = bytes.first(std::min<size_t>(data[0], bytes.size()));
  const auto record = bytes.subspan(code.size());
  const auto info = Arm64UnwindInfo::Parse(record);
  CheckBytes(record, info);
  if (!info.ok()) return 0;
  Require(info->bytes >= 8 && info->bytes <= record.size());
  Require(info->codes.size() <= kMostCodes && info->before_function <= info->codes.size());
  Require(*Arm64UnwindInfo::RecordBytes(record.first(Arm64UnwindInfo::kHeaderBytes)) == info->bytes);
  CheckSteps(record, code, *info);
  return 0;
}
