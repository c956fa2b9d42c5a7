#include "formats/unwind/frame_steps.h"

#include <algorithm>
#include <bitset>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <utility>

#include "formats/byte_reader.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr uint8_t kDwarfRsp = 7, kDwarfRbp = 6;
constexpr uint8_t kRbp = 5;
// By the numbers of x86-64 instructions (System V ABI for x86-64, figure 3.36).
constexpr uint8_t kDwarfRegisters[16] = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};

// lea rbp, [rsp + N] or mov rbp, rsp.
struct FramePointerSet {
  uint32_t end = 0;     // of the instruction, from the function's first byte
  int64_t from_sp = 0;  // N
};

bool StandsAt(std::span<const std::byte> code, uint32_t at, std::initializer_list<uint8_t> bytes) {
  for (const uint8_t byte : bytes) {
    if (LoadAt<uint8_t>(code, at++) != byte) return false;
  }
  return true;
}

// A method that replaces another one while it runs begins with mov rax, [rbp]; push rax: a copy of what that has saved.
constexpr uint32_t kCopyEnd = 5;
bool CopiesFramePointer(std::span<const std::byte> code) { return StandsAt(code, 0, {0x48, 0x8b, 0x45, 0x00, 0x50}); }

std::optional<FramePointerSet> FramePointerSetAt(std::span<const std::byte> code, uint32_t at) {
  if (StandsAt(code, at, {0x48, 0x8d, 0x6c, 0x24})) {
    const std::optional<int8_t> distance = LoadAt<int8_t>(code, at + 4);
    if (distance) return FramePointerSet{at + 5, *distance};
  }
  if (StandsAt(code, at, {0x48, 0x8d, 0xac, 0x24})) {
    const std::optional<int32_t> distance = LoadAt<int32_t>(code, at + 4);
    if (distance) return FramePointerSet{at + 8, *distance};
  }
  if (StandsAt(code, at, {0x48, 0x8b, 0xec}) || StandsAt(code, at, {0x48, 0x89, 0xe5}))
    return FramePointerSet{at + 3, 0};
  return std::nullopt;
}

class StepMaker {
 public:
  // `all` is what the whole prologue takes off sp, the return address included.
  explicit StepMaker(int64_t all) : base_(all) {}

  bool Take(const UnwindCode& code) {
    if (code.prologue_offset < offset_ || code.reg >= std::size(kDwarfRegisters)) return false;
    offset_ = code.prologue_offset;
    switch (code.op) {
      case UnwindOp::kPush:
        Lower(8);
        Save(code.reg, depth_);
        if (code.reg == kRbp && rbp_depth_ == 0) rbp_depth_ = depth_;
        break;
      case UnwindOp::kAlloc:
        Lower(code.value);
        if (offset_ == kCopyEnd && code.value == 8) copy_depth_ = depth_;
        break;
      case UnwindOp::kSetFrame:
        // From here on sp may move.
        if (depth_ < code.value) return false;
        by_frame_register_ = true;
        base_ = depth_;
        Add({offset_, FrameRule::kCfa, kDwarfRegisters[code.reg], static_cast<int32_t>(depth_ - code.value)});
        break;
      case UnwindOp::kSave:
        if (base_ < code.value) return false;
        Save(code.reg, base_ - code.value);
        break;
    }
    return true;
  }

  // Behind the last code. A frame pointer points to where it is saved; any other value in rbp is something else.
  void SetFramePointer(std::span<const std::byte> code) {
    const std::optional<FramePointerSet> set = FramePointerSetAt(code, offset_);
    const int64_t depth = CopiesFramePointer(code) ? copy_depth_ : rbp_depth_;
    if (by_frame_register_ || !set || set->end >= code.size() || depth == 0 || depth_ - set->from_sp != depth) return;
    steps_.push_back({set->end, FrameRule::kCfa, kDwarfRbp, static_cast<int32_t>(depth)});
  }

  std::vector<FrameStep> TakeSteps() { return std::move(steps_); }

 private:
  void Lower(uint32_t bytes) {
    depth_ += bytes;
    if (!by_frame_register_) Add({offset_, FrameRule::kCfa, kDwarfRsp, static_cast<int32_t>(depth_)});
  }
  // The first value that was saved is the caller's. A method that replaces another one saves its registers once more.
  void Save(uint8_t reg, int64_t below_cfa) {
    if (saved_[reg]) return;
    saved_[reg] = true;
    steps_.push_back({offset_, FrameRule::kSaved, kDwarfRegisters[reg], static_cast<int32_t>(-below_cfa)});
  }
  // The last of several steps at one byte counts.
  void Add(const FrameStep& step) {
    std::erase_if(steps_,
                  [&](const FrameStep& other) { return other.rule == FrameRule::kCfa && other.offset == step.offset; });
    steps_.push_back(step);
  }

  uint32_t offset_ = 0;
  int64_t depth_ = 8;  // from sp to the caller's
  int64_t base_;       // the same where saves count from
  // From where rbp is saved to the caller's sp, and from where a copy of it is pushed; 0: it is not.
  int64_t rbp_depth_ = 0, copy_depth_ = 0;
  bool by_frame_register_ = false;
  std::bitset<16> saved_;
  std::vector<FrameStep> steps_;
};

}  // namespace

namespace {

absl::StatusOr<std::vector<FrameStep>> StepsOf(const UnwindInfo& info, std::span<const std::byte> function) {
  int64_t all = 8;
  for (const UnwindCode& code : info.codes) {
    all += code.op == UnwindOp::kPush ? 8 : code.op == UnwindOp::kAlloc ? int64_t{code.value} : 0;
  }
  if (all > kMaxFrameBytes) return absl::DataLossError("unwind info: a frame of more than 1 GiB");
  StepMaker maker(all);
  for (size_t i = info.codes.size(); i-- > 0;) {
    if (!maker.Take(info.codes[i])) return absl::DataLossError("unwind info: its codes are in no order");
  }
  maker.SetFramePointer(function);
  return maker.TakeSteps();
}

}  // namespace

absl::StatusOr<std::vector<FrameStep>> FrameStepsOf(const UnwindInfo& info) { return StepsOf(info, {}); }

absl::StatusOr<std::vector<FrameStep>> FrameStepsOfX64(std::span<const std::byte> bytes,
                                                       std::span<const std::byte> code) {
  size_t next = 0;
  const absl::StatusOr<UnwindInfo> info = UnwindInfo::ParseWithChain(
      [&](uint32_t) {
        const std::span<const std::byte> part = bytes.subspan(next);
        const absl::StatusOr<UnwindInfo> parsed = UnwindInfo::Parse(part);
        next = parsed.ok() ? std::min(bytes.size(), next + parsed->bytes + kRuntimeFunctionBytes) : bytes.size();
        return part;
      },
      0);
  RETURN_IF_ERROR(info.status());
  return StepsOf(*info, code);
}

}  // namespace clrsampler
