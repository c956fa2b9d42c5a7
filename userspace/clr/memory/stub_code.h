// Stubs in heaps that none of the runtime's tables of ranges tells of, known by their instructions.
//
// .NET 8 to 10 write these for each method or delegate that needs one. A method that is called a million times a second
// has 0.5 % of its samples in them. They are freed and their place is used again, so what was found holds for the
// moment at which the memory was read.
//
//   CallCountingStub      counts the calls of a method until it is compiled anew
//   DelegateShuffleThunk  moves the arguments of a delegate to a static method, one to the front
//   InstantiatingStub     gives shared code of a generic method its instantiation
//   UnboxingStub          skips the header of a boxed value; gives shared code the value's type, too
//
// Source: src/coreclr/vm/callcounting.h and src/coreclr/vm/stublink.h; the names are those of the runtime's perf map.
// .NET 11 has ranges for them, one for all that it assembles.
#ifndef CLRSAMPLER_CLR_MEMORY_STUB_CODE_H_
#define CLRSAMPLER_CLR_MEMORY_STUB_CODE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "absl/strings/string_view.h"
#include "clr/memory/code_ranges.h"
#include "formats/elf/elf_image.h"

namespace clrsampler {

constexpr size_t kMaxStubBytes = 256;    // of the instructions of one; the largest that was met has 44
constexpr size_t kStubHeaderBytes = 16;  // before it

struct StubCode {
  AddressRange range;      // of its instructions
  absl::string_view kind;  // as above
};

struct StubMatch {
  size_t bytes;
  absl::string_view kind;
};

// The stub that holds `address`, in a process of that machine. `memory` is what stands at `begin` and behind;
// kMaxStubBytes + kStubHeaderBytes before the address and kMaxStubBytes behind it will do. nullopt: there is none, or
// not all of it is in `memory`.
std::optional<StubCode> StubCodeAround(ElfMachine machine, uint64_t address, std::span<const std::byte> memory,
                                       uint64_t begin);

// The same for code of a range in which the runtime says that it assembled all. On .NET 11 nothing stands before those.
std::optional<StubCode> LinkedStubAround(ElfMachine machine, uint64_t address, std::span<const std::byte> memory,
                                         uint64_t begin);

// A jump to where near calls do not reach, of the blocks of them in code heaps.
constexpr size_t kMaxJumpStubBytes = 16;
std::optional<StubCode> JumpStubAround(ElfMachine machine, uint64_t address, std::span<const std::byte> memory,
                                       uint64_t begin);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_MEMORY_STUB_CODE_H_
