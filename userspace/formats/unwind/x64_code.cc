#include "formats/unwind/x64_code.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>

#include "formats/byte_reader.h"

namespace clrsampler {
namespace {

constexpr int kMaxEpilogueInstructions = 14;
// Prologue offsets have eight bits.
constexpr size_t kMaxPrologueBytes = 255;

// The instructions at one place.
class At {
 public:
  explicit At(std::span<const std::byte> code) : code_(code) {}

  uint8_t operator[](size_t i) const { return i < code_.size() ? static_cast<uint8_t>(code_[i]) : 0; }
  bool Has(size_t bytes) const { return bytes <= code_.size(); }
  bool Begins(std::initializer_list<uint8_t> bytes) const {
    if (!Has(bytes.size())) return false;
    size_t i = 0;
    for (const uint8_t byte : bytes) {
      if (static_cast<uint8_t>(code_[i++]) != byte) return false;
    }
    return true;
  }
  // Sign-extended constants of an instruction; nullopt: it is cut off.
  std::optional<int64_t> Small(size_t i) const { return Widened(LoadAt<int8_t>(code_, i)); }
  std::optional<int64_t> Large(size_t i) const { return Widened(LoadAt<int32_t>(code_, i)); }

 private:
  template <typename T>
  static std::optional<int64_t> Widened(std::optional<T> value) {
    return value ? std::optional<int64_t>(*value) : std::nullopt;
  }
  std::span<const std::byte> code_;
};

class PrologueDecoder {
 public:
  explicit PrologueDecoder(std::span<const std::byte> code)
      : code_(code.first(std::min(code.size(), kMaxPrologueBytes))) {}

  Prologue Run() {
    while (prologue_.bytes < code_.size()) {
      const At at(code_.subspan(prologue_.bytes));
      if (!Push(at) && !MoveSp(at) && !SetFrame(at) && !Probe(at) && !Skip(at)) End(PrologueEnd::kBody);
      if (ended_) return std::move(prologue_);
      if (prologue_.bytes > code_.size()) break;
    }
    prologue_.end = PrologueEnd::kBytes;
    return std::move(prologue_);
  }

 private:
  // Each of these is true where the instruction is one of its kind.
  bool Push(const At& at) {
    constexpr uint8_t kRax = 0, kRbx = 3, kFirstOfR8 = 8;
    if (at[0] >= 0x50 && at[0] <= 0x57) {
      const uint8_t reg = at[0] - 0x50;
      if (reg == kRax) {  // only to move sp
        Add(1, UnwindOp::kAlloc, 0, 8);
      } else if (reg == kRbx || reg == kUnwindRbp) {
        Add(1, UnwindOp::kPush, reg, 0);
      } else {
        End(PrologueEnd::kBody);
      }
      return true;
    }
    if (at[0] != 0x41 || at[1] < 0x54 || at[1] > 0x57) return false;  // push r12 to r15
    Add(2, UnwindOp::kPush, static_cast<uint8_t>(at[1] - 0x50 + kFirstOfR8), 0);
    return true;
  }

  bool MoveSp(const At& at) {
    const bool small = at.Begins({0x48, 0x83, 0xEC});            // sub rsp, small
    if (!small && !at.Begins({0x48, 0x81, 0xEC})) return false;  // sub rsp, large
    const std::optional<int64_t> size = small ? at.Small(3) : at.Large(3);
    if (!size || *size <= 0) {
      End(size ? PrologueEnd::kBody : PrologueEnd::kBytes);
    } else {
      Add(small ? 4 : 7, UnwindOp::kAlloc, 0, static_cast<uint32_t>(*size));
    }
    return true;
  }

  bool SetFrame(const At& at) {
    if (at.Begins({0x48, 0x8B, 0xEC}) || at.Begins({0x48, 0x89, 0xE5})) {  // mov rbp, rsp
      Add(3, UnwindOp::kSetFrame, kUnwindRbp, 0);
      End(PrologueEnd::kFrame);
      return true;
    }
    const bool small = at.Begins({0x48, 0x8D, 0x6C, 0x24});            // lea rbp, [rsp+small]
    if (!small && !at.Begins({0x48, 0x8D, 0xAC, 0x24})) return false;  // lea rbp, [rsp+large]
    const std::optional<int64_t> offset = small ? at.Small(4) : at.Large(4);
    if (!offset || *offset < 0) {
      End(offset ? PrologueEnd::kBody : PrologueEnd::kBytes);
      return true;
    }
    Add(small ? 5 : 8, UnwindOp::kSetFrame, kUnwindRbp, static_cast<uint32_t>(*offset));
    End(PrologueEnd::kFrame);
    return true;
  }

  // A large frame touches its pages one by one: lea r11, [rsp-n]; call the probe; mov rsp, r11.
  bool Probe(const At& at) {
    if (at.Begins({0x4C, 0x8D, 0x9C, 0x24})) {
      const std::optional<int64_t> offset = at.Large(4);
      if (!offset || *offset >= 0) {
        End(offset ? PrologueEnd::kBody : PrologueEnd::kBytes);
        return true;
      }
      probed_ = static_cast<uint32_t>(-*offset);
      prologue_.bytes += 8;
      return true;
    }
    if (probed_ == 0) return false;
    if (at[0] == 0xE8) {
      prologue_.bytes += 5;
    } else if (at.Begins({0xFF, 0x15})) {
      prologue_.bytes += 6;
    } else if (at.Begins({0x49, 0x8B, 0xE3}) || at.Begins({0x4C, 0x89, 0xDC})) {
      Add(3, UnwindOp::kAlloc, 0, probed_);
      probed_ = 0;
    } else {
      return false;
    }
    return true;
  }

  // Instructions that change neither sp nor a register that is restored.
  bool Skip(const At& at) {
    if (at.Begins({0xC5, 0xF8, 0x77})) {  // vzeroupper
      prologue_.bytes += 3;
    } else if (at.Begins({0x85, 0x84, 0x24})) {  // test [rsp-n], eax: touches a page
      prologue_.bytes += 7;
    } else if (at.Begins({0x48, 0x85, 0x84, 0x24})) {
      prologue_.bytes += 8;
    } else {
      return false;
    }
    return true;
  }

  void Add(size_t bytes, UnwindOp op, uint8_t reg, uint32_t value) {
    prologue_.bytes += bytes;
    prologue_.codes.push_back({static_cast<uint8_t>(prologue_.bytes), op, reg, value});
  }
  void End(PrologueEnd how) {
    prologue_.end = how;
    ended_ = true;
  }

  const std::span<const std::byte> code_;
  Prologue prologue_;
  uint32_t probed_ = 0;  // size of a frame whose pages are being touched; 0: none is
  bool ended_ = false;
};

class EpilogueFollower {
 public:
  EpilogueFollower(std::span<const std::byte> code, uint64_t function_bytes, StackWords words)
      : code_(code), function_bytes_(function_bytes), words_(words) {}

  Epilogue Run(size_t offset, uint64_t sp, uint64_t rbp) {
    epilogue_.sp = sp;
    epilogue_.rbp = rbp;
    bool began = false;  // sp was moved: only epilogues do that
    for (int i = 0; i < kMaxEpilogueInstructions && offset < code_.size(); ++i) {
      const At at(code_.subspan(offset));
      if (at.Begins({0xC5, 0xF8, 0x77})) {  // vzeroupper
        offset += 3;
        continue;
      }
      if (Leaves(at, offset, began)) return Leave();
      const size_t bytes = MoveSp(at) + Pop(at);
      if (bytes == 0) return Epilogue();
      began = true;
      offset += bytes;
    }
    return Epilogue();
  }

 private:
  // Bytes of the instruction; 0: it is another one.
  size_t MoveSp(const At& at) {
    if (at.Begins({0x48, 0x83, 0xC4}) || at.Begins({0x48, 0x81, 0xC4})) {  // add rsp, n
      const std::optional<int64_t> number = at[1] == 0x83 ? at.Small(3) : at.Large(3);
      if (number.value_or(-1) < 0) return 0;
      epilogue_.sp += static_cast<uint64_t>(*number);
      return at[1] == 0x83 ? 4 : 7;
    }
    if (at.Begins({0x48, 0x8D, 0x65}) || at.Begins({0x48, 0x8D, 0xA5})) {  // lea rsp, [rbp+n]
      const std::optional<int64_t> number = at[2] == 0x65 ? at.Small(3) : at.Large(3);
      if (!number) return 0;
      epilogue_.sp = epilogue_.rbp + static_cast<uint64_t>(*number);
      return at[2] == 0x65 ? 4 : 7;
    }
    if (!at.Begins({0x48, 0x8B, 0xE5}) && !at.Begins({0x48, 0x89, 0xEC})) return 0;  // mov rsp, rbp
    epilogue_.sp = epilogue_.rbp;
    return 3;
  }

  size_t Pop(const At& at) {
    const bool plain = at[0] >= 0x58 && at[0] <= 0x5F;
    if (!plain && !(at[0] == 0x41 && at[1] >= 0x58 && at[1] <= 0x5F)) return 0;
    if (at[0] == 0x5D) {
      epilogue_.rbp = Word(epilogue_.sp);
      epilogue_.pops_rbp = true;
    }
    epilogue_.sp += 8;
    return plain ? 1 : 2;
  }

  bool Leaves(const At& at, size_t offset, bool began) const {
    if (at[0] == 0xC3 || at.Begins({0xF3, 0xC3})) return true;
    if (at.Begins({0xFF, 0x25})) return true;  // jmp [rip+n]
    // rex.W jmp: the JIT's mark for a tail call. A plain jump through a register is a switch.
    if (at[0] >= 0x48 && at[0] <= 0x4F && at[1] == 0xFF && (at[2] >> 3 & 7) == 4) return true;
    if (began && at[0] == 0xFF && (at[1] >> 3 & 7) == 4) return true;
    if (at[0] != 0xE9) return false;
    const std::optional<int64_t> distance = at.Large(1);
    if (!distance) return false;
    const int64_t target = static_cast<int64_t>(offset) + 5 + *distance;
    // Nothing is on the stack yet where the function begins. It calls itself like this, or has no frame.
    return target <= 0 || static_cast<uint64_t>(target) >= function_bytes_;
  }

  Epilogue Leave() {
    epilogue_.ip = Word(epilogue_.sp);
    epilogue_.sp += 8;
    epilogue_.kind = missing_ ? Epilogue::Kind::kMissingWord : Epilogue::Kind::kLeaves;
    epilogue_.missing = missing_.value_or(0);
    return epilogue_;
  }
  uint64_t Word(uint64_t address) {
    const std::optional<uint64_t> value = words_(address);
    if (!value && !missing_) missing_ = address;
    return value.value_or(0);
  }

  const std::span<const std::byte> code_;
  const uint64_t function_bytes_;
  const StackWords words_;
  Epilogue epilogue_;
  std::optional<uint64_t> missing_;
};

}  // namespace

Prologue DecodePrologue(std::span<const std::byte> code) { return PrologueDecoder(code).Run(); }

std::optional<size_t> FuncletFrameReady(std::span<const std::byte> code) {
  const Prologue prologue = DecodePrologue(code);
  if (prologue.end != PrologueEnd::kBody) return std::nullopt;
  bool saves_rbp = false;
  for (const UnwindCode& done : prologue.codes) saves_rbp |= done.op == UnwindOp::kPush && done.reg == kUnwindRbp;
  if (!saves_rbp) return std::nullopt;
  size_t offset = prologue.bytes;
  // mov rbp, [rdi+n]; mov [rsp+n], rbp; lea rbp, [rbp+n]
  At at(code.subspan(offset));
  if (at.Begins({0x48, 0x8B, 0x2F})) {
    offset += 3;
  } else if (at.Begins({0x48, 0x8B, 0x6F})) {
    offset += 4;
  } else if (at.Begins({0x48, 0x8B, 0xAF})) {
    offset += 7;
  } else {
    return std::nullopt;
  }
  if (offset > code.size()) return std::nullopt;
  at = At(code.subspan(offset));
  if (at.Begins({0x48, 0x89, 0x2C, 0x24})) {
    offset += 4;
  } else if (at.Begins({0x48, 0x89, 0x6C, 0x24})) {
    offset += 5;
  } else if (at.Begins({0x48, 0x89, 0xAC, 0x24})) {
    offset += 8;
  } else {
    return std::nullopt;
  }
  if (offset > code.size()) return std::nullopt;
  at = At(code.subspan(offset));
  if (at.Begins({0x48, 0x8D, 0x6D})) return offset + 4;
  if (at.Begins({0x48, 0x8D, 0xAD})) return offset + 7;
  return std::nullopt;
}

Epilogue FollowEpilogue(std::span<const std::byte> code, uint64_t function_bytes, size_t offset, uint64_t sp,
                        uint64_t rbp, StackWords words) {
  return EpilogueFollower(code, function_bytes, words).Run(offset, sp, rbp);
}

CallEnd DecodeCallEnd(std::span<const std::byte> code) {
  constexpr uint8_t kCallRelative = 0xE8, kGroup5 = 0xFF, kCallIndirect = 2;
  constexpr size_t kRelativeBytes = 5;
  const auto from_end = [&](size_t bytes) -> uint8_t {
    return bytes > 0 && bytes <= code.size() ? static_cast<uint8_t>(code[code.size() - bytes]) : 0;
  };
  CallEnd end;
  // Jumps by a register, or by memory without and with a SIB byte, each with the displacements that there are.
  for (const size_t bytes : {2, 3, 4, 6, 7}) {
    const uint8_t modrm = from_end(bytes - 1), mode = modrm >> 6, rm = modrm & 7;
    if (from_end(bytes) != kGroup5 || (modrm >> 3 & 7) != kCallIndirect) continue;
    const bool has_sib = mode != 3 && rm == 4;
    size_t length = has_sib ? 3 : 2;
    if (mode == 1) length += 1;
    if (mode == 2 || (mode == 0 && (rm == 5 || (has_sib && (from_end(bytes - 2) & 7) == 5)))) length += 4;
    end.may_call |= length == bytes;
  }
  if (from_end(kRelativeBytes) != kCallRelative) return end;
  if (!end.may_call) end.distance = LoadAt<int32_t>(code, code.size() - sizeof(int32_t));
  end.may_call = true;
  return end;
}

std::optional<uint32_t> WordsPushedByResolveStub(std::span<const std::byte> code) {
  struct Form {
    std::initializer_list<uint8_t> bytes;
    size_t length;
  };
  static const Form kForms[] = {
      {{0x49, 0xBA}, 10},             // mov r10, imm64
      {{0x48, 0xB8}, 10},             // mov rax, imm64
      {{0x48, 0x8B, 0x07}, 3},        // mov rax, [rdi]
      {{0x48, 0x8B, 0xD0}, 3},        // mov rdx, rax
      {{0x48, 0xC1, 0xE8}, 4},        // shr rax, imm8
      {{0x48, 0x03, 0xC2}, 3},        // add rax, rdx
      {{0x48, 0x35}, 6},              // xor rax, imm32
      {{0x48, 0x25}, 6},              // and rax, imm32
      {{0x4A, 0x8B, 0x04, 0x10}, 4},  // mov rax, [rax+r10]
      {{0x48, 0x3B, 0x50}, 4},        // cmp rdx, [rax+imm8]
      {{0x4C, 0x3B, 0x50}, 4},        // cmp r10, [rax+imm8]
      {{0x48, 0x8B, 0x40}, 4},        // mov rax, [rax+imm8]
      {{0x75}, 2},                    // jne miss
      {{0x83, 0x00, 0xFF}, 3},        // add dword ptr [rax], -1
      {{0x7D}, 2},                    // jge to the stub's begin
      {{0x49, 0x83, 0xCB, 0x01}, 4},  // or r11, 1
  };
  // A hit pops the words that it has pushed. The way to the runtime's symbolizer leaves two words, rdx and rax, on the
  // stack.
  constexpr int kPushedForResolver = 2;
  int moved = 0;
  for (size_t at = 0; at < code.size();) {
    const At next(code.subspan(at));
    if (next[0] == 0x52 || next[0] == 0x50 || next[0] == 0x5A) {  // push rdx, push rax, pop rdx
      moved += next[0] == 0x5A ? -1 : 1;
      ++at;
      continue;
    }
    if (next.Begins({0xFF, 0xE0}) || next.Begins({0xFF, 0x60})) {  // jmp rax, jmp [rax+imm8]
      const bool hit = at > 0 && static_cast<uint8_t>(code[at - 1]) == 0x5A;
      const int pushed = (hit ? 0 : kPushedForResolver) - moved;
      // At the jump itself nothing tells the two ways apart.
      if (at == 0 || pushed < 0 || pushed > kPushedForResolver) return std::nullopt;
      return static_cast<uint32_t>(pushed);
    }
    const auto form = std::find_if(std::begin(kForms), std::end(kForms), [&](const Form& known) {
      return next.Begins(known.bytes) && next.Has(known.length);
    });
    if (form == std::end(kForms)) return std::nullopt;
    at += form->length;
  }
  return std::nullopt;
}

}  // namespace clrsampler
