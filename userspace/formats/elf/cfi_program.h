// Runs the Call Frame Instructions of one function (DWARF 5, 6.4.2; LSB 5.0; AArch64 DWARF ABI) and reduces what they
// say to CfiRow: the CFA, the frame pointer and the return address.
//
// Expressions are not evaluated; those that compilers, linkers and OpenSSL's assembly write are recognised by their
// bytes. In Debian 12's C and C++ libraries, OpenSSL and ICU and in libcoreclr that leaves out one form (libcrypto's
// CFA by way of r9).
#ifndef CLRSAMPLER_FORMATS_ELF_CFI_PROGRAM_H_
#define CLRSAMPLER_FORMATS_ELF_CFI_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/functional/function_ref.h"
#include "formats/elf/cfi_rows.h"
#include "formats/elf/elf_image.h"
#include "formats/elf/frame_entry.h"

namespace clrsampler {

// The words of a CIE about all its functions. Immutable after construction.
class CfiProgram {
 public:
  // The longest program that is run: a look-up in a hostile image costs no more than this. The longest of 524 libraries
  // of Debian 12 and .NET has 9,984 bytes.
  static constexpr size_t kMaxInstructionBytes = 64 * 1024;
  // The instructions of a CIE before the function's own: some 6 bytes.
  static constexpr size_t kMaxCommonBytes = 4096;
  // DW_CFA_remember_state within one another; compilers need one or two.
  static constexpr size_t kMaxRemembered = 64;

  CfiProgram(ElfMachine machine, const CommonEntry& common);

  // False: the CIE's own instructions can't be run, so nothing is known of its functions.
  bool ok() const { return ok_; }

  // The row of [start, end), never empty. False: enough seen.
  using Visitor = absl::FunctionRef<bool(VirtualAddress start, VirtualAddress end, const CfiRow& row)>;
  // Rows in the order of their addresses, from the function's start to its end without gaps. False: they end early, at
  // an instruction that can't be run; the rows before it are good.
  bool ForEachRow(const FrameDescription& function, Visitor visit) const;

  // The row at an address inside the function; nullopt: it can't be run up to there.
  std::optional<CfiRow> RowAt(const FrameDescription& function, VirtualAddress address) const;

 private:
  friend class CfiRun;

  // Where a register's value in the caller is, as the instructions state it.
  enum class Where : uint8_t {
    kUnstated,
    kSame,
    kUndefined,
    kAtCfa,     // stored at CFA + offset
    kAtSp,      // stored at sp + offset
    kAtFp,      // stored at fp + offset
    kRegister,  // in the register of number `offset`
    kElsewhere,
  };
  struct Rule {
    int64_t offset = 0;
    Where where = Where::kUnstated;
  };
  enum class Cfa : uint8_t { kNone, kRegister, kSpDeref, kSpIndexed, kFpDeref, kPlt, kSignalContext, kUnknown };
  struct State {
    Cfa cfa = Cfa::kNone;
    uint64_t cfa_register = 0;
    int64_t cfa_offset = 0;
    Rule fp, ra, sp;
  };

  CfiRow Reduce(const State& state, bool signal_frame) const;
  Rule* RuleOf(State& state, uint64_t reg) const;

  ElfMachine machine_;
  uint64_t fp_register_ = 0, sp_register_ = 0;
  CommonEntry common_;
  State initial_;
  bool ok_ = false;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_ELF_CFI_PROGRAM_H_
