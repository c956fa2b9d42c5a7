#include <algorithm>
#include <bitset>
#include <optional>
#include <utility>

#include "formats/byte_reader.h"
#include "formats/unwind/arm64_unwind.h"
#include "formats/unwind/frame_steps.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr uint32_t kInstructionBytes = 4;
constexpr uint32_t kPaciasp = 0xD503233F, kTakesCallersRegisters = 0xA9407BBD;  // ldp x29, x30, [x29]
constexpr uint8_t kDwarfFp = 29, kDwarfSp = 31;

class Arm64StepMaker {
 public:
  // `offset` of the function are done with the code. False: it saves what lies in the caller's frame, or the frame is
  // too large.
  bool Take(const Arm64UnwindCode& code, uint32_t offset) {
    offset_ = offset;
    switch (code.op) {
      case Arm64UnwindOp::kNop:
        return true;
      case Arm64UnwindOp::kAlloc:
        return Lower(code.value);
      case Arm64UnwindOp::kPush:
        return Lower(code.value) && Save(code.first, 0) && (code.second == 0 || Save(code.second, 8));
      case Arm64UnwindOp::kSave:
        return Save(code.first, code.value) && (code.second == 0 || Save(code.second, int64_t{code.value} + 8));
      case Arm64UnwindOp::kSetFrame:
        // From here on sp may move.
        if (code.value > depth_) return false;
        by_frame_pointer_ = true;
        SetCfa(kDwarfFp, depth_ - code.value);
        return true;
      case Arm64UnwindOp::kSignReturn:
        steps_.push_back({offset_, FrameRule::kReturnSigned, 0, 0});
        return true;
    }
    return false;
  }

  std::vector<FrameStep> TakeSteps() { return std::move(steps_); }

 private:
  bool Lower(uint32_t bytes) {
    depth_ += bytes;
    if (depth_ > kMaxFrameBytes) return false;
    if (!by_frame_pointer_) SetCfa(kDwarfSp, depth_);
    return true;
  }
  // The first value that was saved is the caller's.
  bool Save(uint8_t reg, int64_t above_sp) {
    if (above_sp >= depth_) return false;
    if (saved_[reg]) return true;
    saved_[reg] = true;
    steps_.push_back({offset_, FrameRule::kSaved, reg, static_cast<int32_t>(above_sp - depth_)});
    return true;
  }
  // The last of several steps at one byte counts.
  void SetCfa(uint8_t reg, int64_t bytes) {
    std::erase_if(steps_,
                  [&](const FrameStep& step) { return step.rule == FrameRule::kCfa && step.offset == offset_; });
    steps_.push_back({offset_, FrameRule::kCfa, reg, static_cast<int32_t>(bytes)});
  }

  uint32_t offset_ = 0;
  int64_t depth_ = 0;  // from sp to the caller's
  bool by_frame_pointer_ = false;
  std::bitset<96> saved_;
  std::vector<FrameStep> steps_;
};

// sub sp, sp, #bytes
bool IsAllocation(uint32_t instruction, uint32_t bytes) {
  if ((instruction & 0xFF8003FF) != 0xD10003FF) return false;
  return (instruction >> 10 & 0xFFF) << ((instruction >> 22 & 1) != 0 ? 12 : 0) == bytes;
}

// A method that replaces another one while it runs keeps that one's frame: its first code is the frame, and no
// instruction of its own makes it.
bool KeepsFrameOfAnother(const Arm64UnwindInfo& info, std::span<const std::byte> code) {
  const std::span<const Arm64UnwindCode> codes(info.codes);
  if (info.before_function != 0 || codes.empty() || codes.front().op != Arm64UnwindOp::kAlloc) return false;
  const auto contradicts = [&](size_t index) {
    const std::optional<uint32_t> instruction = LoadAt<uint32_t>(code, index * kInstructionBytes);
    if (!instruction || index >= codes.size() || codes[index].op != Arm64UnwindOp::kAlloc) return false;
    return !IsAllocation(*instruction, codes[index].value);
  };
  // The second one tells where both frames begin with as many bytes.
  return contradicts(0) || contradicts(1);
}

// On .NET 11 such a method first takes the caller's registers from the other one's record. Where it signs its return
// address, it also undoes the other one's signature. These instructions have no codes.
size_t InstructionsWithoutCode(const Arm64UnwindInfo& info, std::span<const std::byte> code) {
  constexpr size_t kMost = 8;  // there are 5
  if (info.codes.size() < 2 || info.codes[1].op != Arm64UnwindOp::kSignReturn) {
    return LoadAt<uint32_t>(code, 0) == kTakesCallersRegisters ? 1 : 0;
  }
  for (size_t i = 0; i < kMost; ++i) {
    if (LoadAt<uint32_t>(code, i * kInstructionBytes) == kPaciasp) return i;
  }
  return 0;
}

}  // namespace

absl::StatusOr<std::vector<FrameStep>> FrameStepsOfArm64(std::span<const std::byte> unwind,
                                                         std::span<const std::byte> code) {
  ASSIGN_OR_RETURN(const Arm64UnwindInfo info, Arm64UnwindInfo::Parse(unwind));
  const bool keeps_frame = KeepsFrameOfAnother(info, code);
  const size_t before = keeps_frame ? 1 : info.before_function;
  const size_t without_code = keeps_frame ? InstructionsWithoutCode(info, code) : 0;
  Arm64StepMaker maker;
  for (size_t i = 0; i < info.codes.size(); ++i) {
    const auto done = static_cast<uint32_t>(i < before ? 0 : i + 1 - before + without_code);
    if (!maker.Take(info.codes[i], done * kInstructionBytes)) {
      return absl::DataLossError("arm64 unwind info: a frame that no prologue makes");
    }
  }
  return maker.TakeSteps();
}

}  // namespace clrsampler
