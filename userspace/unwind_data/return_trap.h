// The code that a runtime puts in the place of a return address, to stop the thread when the method returns. Nothing
// calls it, and where it returns to only the runtime knows.
//
// CoreCLR has OnHijackTripThread for it (src/coreclr/vm/amd64/asmhelpers.S and vm/arm64). On x86-64 the method's `ret`
// goes there with no return address behind it, so the function pushes room for one, and the runtime writes the true one
// there. Its unwind data count as if it had been called, and say nothing of rbp, which it leaves as it is. Known by its
// first instructions, which push rax below rbp as no compiler does: one function of libcoreclr on 8.0.30, 9.0.19 and
// 10.0.14. On arm64 it saves a method's results, the vectors among them, below the registers that survive calls: one
// function on 9.0.23, 10.0.15 and 11.0.0.
//
// NativeAOT has RhpGcProbeHijack (src/coreclr/nativeaot/Runtime/amd64/GcProbe.S and arm64/GcProbe.S): one function of
// its programs of 8.0.30 and 9.0.19, on arm64 of 8.0.34 and 9.0.23.
#ifndef CLRSAMPLER_UNWIND_DATA_RETURN_TRAP_H_
#define CLRSAMPLER_UNWIND_DATA_RETURN_TRAP_H_

#include <cstddef>
#include <span>

#include "formats/elf/cfi_rows.h"
#include "formats/elf/elf_image.h"

namespace clrsampler {

// Whether `code` begins with OnHijackTripThread.
bool BeginsReturnTrap(ElfMachine machine, std::span<const std::byte> code);
// Whether it begins with RhpGcProbeHijack.
bool BeginsAotReturnTrap(ElfMachine machine, std::span<const std::byte> code);
// The row that the unwind data of OnHijackTripThread should have behind its first instruction, on x86-64.
CfiRow RowOfReturnTrap(CfiRow row);

}  // namespace clrsampler

#endif  // CLRSAMPLER_UNWIND_DATA_RETURN_TRAP_H_
