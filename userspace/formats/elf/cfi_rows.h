// The data of an ELF image for stepping out of its functions, in a form that a sampler can use: rows of Call Frame
// Information. They are reduced to the registers that samples carry: the stack and frame pointer, and for leaves any
// register. Sources: DWARF 5, 6.4; LSB 5.0 "Exception Frames"; x86-64 psABI 3.6; AArch64 DWARF ABI.
#ifndef CLRSAMPLER_FORMATS_ELF_CFI_ROWS_H_
#define CLRSAMPLER_FORMATS_ELF_CFI_ROWS_H_

#include <cstdint>
#include <utility>

namespace clrsampler {

// How to find the Canonical Frame Address: the value of sp in the caller, once it has returned there.
enum class CfaRule : uint8_t {
  kUnsupported,  // another register, or an expression that we don't know
  kRegister,     // the register of DWARF number `cfa_register` + cfa_offset: known for leaves only
  kSpOffset,     // sp + cfa_offset
  kFpOffset,     // rbp or x29 + cfa_offset
  kFpDeref,      // the word at fp + cfa_offset: functions that realign the stack
  kSpDeref,      // 8 above the word at sp + cfa_offset: OpenSSL's assembly keeps the caller's sp in its frame
  kSpIndexed,    // 8 above the word at sp + cfa_offset + 8 * the register `cfa_register`: leaves only
  kPlt,          // sp + 8, and 8 more where the low four bits of ip are at least cfa_offset: lazy PLT entries
};

enum class RegisterRule : uint8_t {
  kSame,         // not saved: the caller's is what it is now
  kAtCfaOffset,  // saved at CFA + offset
  kAtFpOffset,   // of fp only: saved at fp + offset, in functions that realign the stack
  kInRegister,   // of the return address: in the register of DWARF number ra_offset; known for leaves only
  kUndefined,    // lost; of the return address: the outermost frame
  kUnsupported,
};

struct CfiRow {
  CfaRule cfa = CfaRule::kUnsupported;
  RegisterRule fp = RegisterRule::kSame;
  RegisterRule ra = RegisterRule::kAtCfaOffset;
  bool signal_frame = false;  // interrupted by a signal, not called; all registers lie in the signal's context
  int32_t cfa_offset = 0;
  int32_t fp_offset = 0;
  int32_t ra_offset = 0;     // -8 on x86-64 in all but a few functions of assembly; kSame on AArch64: in lr
  uint8_t cfa_register = 0;  // of kRegister and kSpIndexed

  friend bool operator==(const CfiRow&, const CfiRow&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const CfiRow& row) {
    const uint64_t rules = static_cast<uint64_t>(row.cfa) | static_cast<uint64_t>(row.fp) << 8 |
                           static_cast<uint64_t>(row.ra) << 16 | uint64_t{row.signal_frame} << 24 |
                           uint64_t{row.cfa_register} << 25 | static_cast<uint64_t>(row.cfa_offset) << 32;
    const uint64_t offsets = static_cast<uint32_t>(row.fp_offset) | static_cast<uint64_t>(row.ra_offset) << 32;
    return H::combine(std::move(h), rules, offsets);
  }
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_ELF_CFI_ROWS_H_
