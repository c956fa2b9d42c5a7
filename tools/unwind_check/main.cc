// unwind_check: do the two witnesses of managed frames, unwind data and code bytes, agree?
//
//   unwind_check images IMAGE...    each runtime function of ready-to-run images
//   unwind_check process PID        each JIT-compiled method of a running process, read out of its memory
//   unwind_check leaves IMAGE       at each address of standard input: how an ELF image's function is left there
//
// Exit status 1: something is not readable or does not agree.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "formats/unwind/x64_code.h"
#include "unwind/managed_step.h"
#include "unwind_check.h"

namespace clrsampler {
namespace {

std::string Text(const UnwindCode& code) {
  constexpr const char* kOps[] = {"push", "alloc", "frame", "save"};
  return absl::StrCat(" ", code.prologue_offset, ":", kOps[static_cast<int>(code.op)], " r", code.reg, " ", code.value);
}

// A stack of which each word tells its own address.
class AddressWords : public StackMemory {
 public:
  std::optional<uint64_t> Word(uint64_t address) const override { return address ^ kMark; }
  static constexpr uint64_t kMark = 0x5A00000000000000;
};

}  // namespace

std::string PrologueDifference(const ManagedFunction& function) {
  const Prologue prologue = DecodePrologue(function.code);
  absl::InlinedVector<UnwindCode, 8> decoded = prologue.codes,
                                     written(function.unwind.codes.rbegin(), function.unwind.codes.rend());
  const auto drop = [](auto& codes, UnwindOp op) {
    codes.erase(std::remove_if(codes.begin(), codes.end(), [&](const UnwindCode& code) { return code.op == op; }),
                codes.end());
  };
  // Only functions that move sp in their body say that they have a frame pointer.
  if (function.unwind.frame_register == 0) drop(decoded, UnwindOp::kSetFrame);
  const bool agree = decoded == written;
  // Where rbp points: at the place where it was saved.
  bool frame_at_slot = true;
  if (prologue.end == PrologueEnd::kFrame) {
    uint64_t since = 0;
    for (const UnwindCode& code : prologue.codes) {
      if (code.op == UnwindOp::kPush) since = code.reg == kUnwindRbp ? 0 : since + 8;
      if (code.op == UnwindOp::kAlloc) since += code.value;
    }
    frame_at_slot = since == prologue.codes.back().value;
  }
  if (agree && frame_at_slot) return "";
  std::string text = agree ? "rbp points elsewhere: bytes" : "bytes";
  for (const UnwindCode& code : decoded) text += Text(code);
  text += " / unwind data";
  for (const UnwindCode& code : written) text += Text(code);
  return text;
}

std::string EpilogueDifference(const ManagedFunction& function, bool& recognised) {
  recognised = false;
  constexpr size_t kLongestEpilogue = 40;
  const size_t size = function.code.size();
  if (size != function.end - function.begin || function.funclet) return "";
  // In the body of this function, as its codes say.
  const AddressWords stack;
  UnwindRegisters registers;
  registers.sp = 0x10000000;
  uint64_t slot = registers.sp;  // where rbp points
  uint64_t own = 0;
  bool pushed = false;
  for (const UnwindCode& code : function.unwind.codes) {
    if (code.op == UnwindOp::kPush && code.reg == kUnwindRbp) {
      slot = registers.sp + own;
      pushed = true;
    }
    if (code.op == UnwindOp::kPush) own += 8;
    if (code.op == UnwindOp::kAlloc) own += code.value;
  }
  if (function.osr) {
    own = 0;
    for (const UnwindCode& code : function.unwind.codes) {
      if (code.prologue_offset == 0) continue;
      own += code.op == UnwindOp::kPush ? 8 : code.op == UnwindOp::kAlloc ? code.value : 0;
    }
    slot = registers.sp + own - 8;
  }
  registers.fp = pushed ? slot : 0x12345;
  for (size_t offset = size > kLongestEpilogue ? size - kLongestEpilogue : 0; offset < size; ++offset) {
    if (offset < function.unwind.prologue_bytes) continue;
    registers.ip = function.begin + offset;
    const ManagedStepResult by_code = ManagedStep(function, true, registers, stack);
    if (by_code.kind != ManagedStepResult::Kind::kStepped || by_code.how != ManagedStepHow::kEpilogue) continue;
    ManagedFunction without = function;
    without.code = {};
    const ManagedStepResult by_codes = ManagedStep(without, true, registers, stack);
    if (by_codes.kind != ManagedStepResult::Kind::kStepped) return "codes do not lead out";
    if (by_code.caller.ip == by_codes.caller.ip && by_code.caller.sp == by_codes.caller.sp &&
        by_code.caller.fp == by_codes.caller.fp) {
      recognised = true;
      return "";
    }
  }
  return "";
}

}  // namespace clrsampler

int main(int argc, char** argv) {
  const absl::string_view verb = argc > 2 ? argv[1] : "";
  int problems = 0;
  if (verb == "images") {
    for (int i = 2; i < argc; ++i) problems += clrsampler::CheckImages(argv[i]);
  } else if (verb == "process") {
    uint32_t pid = 0;
    std::from_chars(argv[2], argv[2] + std::strlen(argv[2]), pid);
    problems = clrsampler::CheckProcess(pid);
  } else if (verb == "leaves") {
    problems = clrsampler::CheckLeaves(argv[2]);
  } else {
    std::fprintf(stderr, "usage: unwind_check images IMAGE... | process PID | leaves IMAGE\n");
    return 2;
  }
  return problems == 0 ? 0 : 1;
}
