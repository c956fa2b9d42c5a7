// What an ELF image says about stepping out of its functions, in a form that a sampler can use: rows of Call Frame
// Information (DWARF 5, 6.4; LSB 5.0 "Exception Frames"; x86-64 psABI 3.6; AArch64 DWARF ABI), reduced to the stack and
// frame pointer, which is what samples carry.
#ifndef CLRSAMPLER_FORMATS_ELF_CFI_ROWS_H_
#define CLRSAMPLER_FORMATS_ELF_CFI_ROWS_H_

#include <cstdint>

namespace clrsampler {

// How to find the Canonical Frame Address: the value of sp in the caller, once it has returned there.
enum class CfaRule : uint8_t {
  kUnsupported,  // another register, or an expression that we don't know
  kSpOffset,     // sp + cfa_offset
  kFpOffset,     // rbp or x29 + cfa_offset
  kFpDeref,      // the word at fp + cfa_offset: functions that realign the stack
  kPlt,          // sp + 8, and 8 more in the last 5 bytes of each 16: lazy PLT entries
};

enum class RegisterRule : uint8_t {
  kSame,         // not saved: the caller's is what it is now
  kAtCfaOffset,  // saved at CFA + offset
  kUndefined,    // of the return address: the outermost frame
  kUnsupported,
};

struct CfiRow {
  CfaRule cfa = CfaRule::kUnsupported;
  RegisterRule fp = RegisterRule::kSame;
  RegisterRule ra = RegisterRule::kAtCfaOffset;
  bool signal_frame = false;  // interrupted by a signal, not called; all registers lie in the signal's context
  int32_t cfa_offset = 0;
  int32_t fp_offset = 0;
  int32_t ra_offset = 0;  // always -8 on x86-64 where kAtCfaOffset; kSame on AArch64: in lr

  friend bool operator==(const CfiRow&, const CfiRow&) = default;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_ELF_CFI_ROWS_H_
