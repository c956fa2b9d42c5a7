// A function as a target shows it, and a stack of any words: {u16 where it is interrupted, u8 flags, u8 bytes of unwind
// data, unwind data, code}. The words come from the address.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "formats/byte_reader.h"
#include "formats/unwind/arm64_code.h"
#include "formats/unwind/frame_steps.h"
#include "formats/unwind/unwind_bytes.h"
#include "formats/unwind/x64_code.h"
#include "unwind/cfi_step.h"
#include "unwind/managed_step.h"
#include "unwind_data/managed_functions.h"

namespace {

using namespace clrsampler;  // NOLINT(google-build-using-namespace): one file, one purpose

constexpr uint64_t kSp = 0x7FFF00001000;
constexpr uint32_t kMaxStackBytes = 8 << 20;

void Require(bool condition) {
  if (!condition) __builtin_trap();
}

// Whether an arm64 instruction writes register 31, or addresses by it: sp, or for others the zero register.
bool NamesSp(std::span<const std::byte> code) {
  for (; code.size() >= 4; code = code.subspan(4)) {
    uint32_t bits;
    std::memcpy(&bits, code.data(), sizeof(bits));
    if ((bits & 31) == 31 || (bits >> 5 & 31) == 31) return true;
  }
  return false;
}

class AnyWords : public StackMemory {
 public:
  explicit AnyWords(uint8_t seed) : seed_(seed) {}
  std::optional<uint64_t> Word(uint64_t address) const override {
    ++asked;
    if (address % 8 != 0) return std::nullopt;
    const uint64_t mixed = (address + seed_) * 0x9E3779B97F4A7C15;
    if (mixed >> 61 == 0) return std::nullopt;
    return mixed >> 62 == 1 ? kSp + (mixed & 0xFFF8) : mixed;
  }
  mutable int asked = 0;

 private:
  uint8_t seed_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 4) return 0;
  const uint16_t at = static_cast<uint16_t>(data[0] | data[1] << 8);
  const uint8_t flags = data[2];
  const auto bytes = std::as_bytes(std::span(data + 4, size - 4));
  const auto unwind = bytes.first(std::min<size_t>(data[3], bytes.size()));
  const auto code = bytes.subspan(unwind.size());

  const Prologue prologue = DecodePrologue(code);
  for (const UnwindCode& done : prologue.codes)
    Require(done.prologue_offset != 0 && done.prologue_offset <= code.size());
  if (const auto ready = FuncletFrameReady(code)) Require(*ready > prologue.bytes);

  Require(WordsPushedByResolveStub(code).value_or(0) <= 2);
  const CallEnd call = DecodeCallEnd(code), seen_call = DecodeCallEnd(code.last(std::min(code.size(), kMaxCallBytes)));
  Require(call.may_call || !call.distance);
  Require(call.may_call == seen_call.may_call && call.distance == seen_call.distance);
  const Arm64Leaf arm64 = DecodeArm64Leaf(code, at);
  Require(arm64.where == Arm64Return::kLinkRegister || arm64.sp_above == 0);
  if (arm64.where == Arm64Return::kLinkRegister) Require(arm64.sp_above <= kMaxStackBytes);
  // Within the bytes that it asks for it is not short of any: what it can't say then is for code that would lower the
  // caller's sp, or raise it beyond any stack.
  if (at % 4 == 0 && at >= kArm64BytesBefore && at + kArm64BytesFrom <= code.size()) {
    const auto window = code.subspan(at - kArm64BytesBefore, kArm64BytesBefore + kArm64BytesFrom);
    const Arm64Leaf seen = DecodeArm64Leaf(window, kArm64BytesBefore);
    Require(seen.where != Arm64Return::kUnknown || NamesSp(window));
  }

  const auto info = UnwindInfo::Parse(unwind);
  const auto chained =
      UnwindInfo::ParseWithChain([&](uint32_t rva) { return bytes.subspan(std::min<size_t>(rva, bytes.size())); }, 0);
  if (chained.ok()) Require(chained->codes.size() <= 9 * 255);
  // Bytes that are kept say what the image said.
  const auto kept = UnwindBytes([&](uint32_t rva) { return bytes.subspan(std::min<size_t>(rva, bytes.size())); }, 0);
  Require(!kept.ok() || (chained.ok() && kept->size() <= kMaxUnwindPartBytes));
  if (kept.ok()) {
    const auto steps = FrameStepsOfX64(AsBytes(*kept)), expected = FrameStepsOf(*chained);
    Require(steps.ok() == expected.ok() && (!steps.ok() || *steps == *expected));
  }
  if (!info.ok()) return 0;
  Require(info->bytes >= 4 && info->bytes <= UnwindInfo::kMaxBytes && info->codes.size() <= 255);

  ManagedFunction function;
  function.begin = 0x400000;
  function.end = function.begin + std::max<size_t>(code.size(), 1) + (flags & 1) * 64;
  function.method_begin = function.begin;
  function.unwind = *(flags & 2 && chained.ok() ? chained : info);
  function.funclet = (flags & 4) != 0;
  function.osr = (flags & 8) != 0;
  function.osr_frame_bytes = flags;
  function.code = code;
  const AnyWords stack(flags);
  UnwindRegisters registers;
  registers.ip = function.begin + at;
  registers.sp = kSp;
  registers.fp = kSp + (flags & 0xF0);
  // A row says what following the code says, over any stack.
  const uint64_t function_bytes = function.end - function.begin;
  if (const std::optional<CfiRow> row = RowOfEpilogue(code, function_bytes, at)) {
    const Epilogue followed = FollowEpilogue(code, function_bytes, at, registers.sp, registers.fp,
                                             [&](uint64_t word) { return stack.Word(word); });
    const CfiStepResult stepped = CfiStep(*row, /*leaf=*/true, registers, stack, ElfMachine::kX64);
    if (followed.kind == Epilogue::Kind::kLeaves && stepped.outcome == CfiStepOutcome::kCaller) {
      Require(stepped.caller.ip == followed.ip && stepped.caller.sp == followed.sp);
    }
  }
  for (const bool leaf : {true, false}) {
    stack.asked = 0;
    const ManagedStepResult result = ManagedStep(function, leaf, registers, stack);
    Require(stack.asked <= 2 * 255 * 9 + 32);
    if (result.kind == ManagedStepResult::Kind::kStepped) {
      Require(result.caller.sp > registers.sp);  // so that a walk ends
      // A caller is never in its epilogue, and in its prologue only where that calls.
      Require(leaf || result.how != ManagedStepHow::kEpilogue);
      if (!leaf && result.how == ManagedStepHow::kPrologue) Require(at < function.unwind.prologue_bytes);
    }
    if (leaf && !function.funclet && at < function.end - function.begin) {
      const Epilogue epilogue = FollowEpilogue(code, function.end - function.begin, at, kSp, registers.fp,
                                               [&](uint64_t word) { return stack.Word(word); });
      const bool taken = result.how == ManagedStepHow::kEpilogue;
      Require(at == 0 || taken == (epilogue.kind != Epilogue::Kind::kNone));
    }
  }
  return 0;
}
