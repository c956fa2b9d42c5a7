// The code of one image as a graph: which functions branch to which, which refer to an address, what tables of function
// pointers hold. Everything is read once; questions are then look-ups.
//
// A function goes by its index in the function table. "Calls" are direct calls and jumps to a function's first byte.
#ifndef CLRSAMPLER_CLR_HOOKS_IMAGE_CODE_H_
#define CLRSAMPLER_CLR_HOOKS_IMAGE_CODE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "clr/hooks/code_reference.h"
#include "clr/hooks/function_table.h"
#include "formats/elf/elf_image.h"
#include "formats/elf/relative_relocations.h"

namespace clrsampler {

inline constexpr uint64_t kSlotBytes = sizeof(uint64_t);  // of a table of functions

// The hint where a search found nothing.
inline constexpr absl::string_view kUnknownBuild =
    "this build of .NET is arranged in another way than those that are known; docs/hooks.md says what is looked for";

using FunctionIndex = uint32_t;

// Borrows the image's bytes. Any thread may read once IndexReferences was called.
class ImageCode {
 public:
  // An error says why the image's functions can't be told for sure. kUnimplemented: there is more code than any runtime
  // has, or a function is larger than any. So all searches of code end soon.
  static absl::StatusOr<ImageCode> Read(const ElfImage& image);
  // The same without bounds, for NativeAOT programs: only functions that have known names are looked at, and the rest
  // is as large as it likes. `symbols`: as for FunctionTable.
  static absl::StatusOr<ImageCode> ReadForNames(const ElfImage& image, const ElfSymbolTable* symbols);

  const ElfImage& image() const { return image_; }
  const FunctionTable& functions() const { return functions_; }
  const RelativeRelocations& relocations() const { return relocations_; }

  VirtualAddress Start(FunctionIndex function) const { return functions_.Start(function); }
  std::span<const std::byte> Code(FunctionIndex function) const { return functions_.Code(function); }

  // Larger than any function of a runtime: it is not looked at.
  bool IsTooLarge(FunctionIndex function) const { return Code(function).size() > kMaxFunctionBytes; }

  // Scans all code, which must be from Read. `watched`: addresses of data of which it is to be known who refers to
  // them; a few. kUnimplemented: there are more calls than any runtime has.
  absl::Status IndexReferences(std::span<const VirtualAddress> watched);

  // Precondition of these two: IndexReferences has succeeded. Sorted, each once.
  std::span<const FunctionIndex> CallersOf(FunctionIndex function) const;  // without the function itself
  // The functions that refer to the address watched[index]. At most kMaxUsers, so that many of them look like too many.
  std::span<const FunctionIndex> UsersOf(size_t index) const { return users_[index]; }

  struct References {
    std::vector<FunctionIndex> calls;  // sorted, as often as they occur; other functions only
    std::vector<VirtualAddress> data;  // likewise; of loaded addresses only
  };
  References ReferencesOf(FunctionIndex function) const;

  // The function whose address the relocated slot at `slot` holds.
  std::optional<FunctionIndex> FunctionInSlot(VirtualAddress slot) const;
  // How many slots from `table` on hold functions, at most kMaxTableSlots.
  size_t TableSlots(VirtualAddress table) const;

  // Answers of code_scan_x64.h or code_scan_arm64.h.
  bool BeginsWithFrame(FunctionIndex function) const;
  std::optional<VirtualAddress> CopiedGuid(FunctionIndex function) const;
  std::optional<JitReturnSite> ReturnOfCompileMethod(FunctionIndex function) const;
  struct Thunk {
    FunctionIndex target;
    std::string arguments;
  };
  std::optional<Thunk> JumpThunkOf(FunctionIndex function) const;

  static constexpr size_t kMaxUsers = 64;
  static constexpr size_t kMaxTableSlots = 256;
  static constexpr uint64_t kMaxCodeBytes = 32 << 20;   // a single-file host has 8 MB
  static constexpr size_t kMaxFunctionBytes = 1 << 20;  // libclrjit.so 11.0.0 for arm64 has one of 210 KB

 private:
  // The bound is on distinct pairs. A single-file host has 60,000.
  static constexpr size_t kMaxCalls = 2'000'000;

  ImageCode(const ElfImage& image, FunctionTable functions, RelativeRelocations relocations)
      : image_(image), functions_(std::move(functions)), relocations_(std::move(relocations)) {}
  void Scan(FunctionIndex function, CodeReferenceSink found) const;
  bool IsLoaded(VirtualAddress address) const;

  ElfImage image_;
  FunctionTable functions_;
  RelativeRelocations relocations_;
  // The callers of function i are callers_[first_caller_[i]] up to callers_[first_caller_[i + 1]].
  std::vector<uint32_t> first_caller_;
  std::vector<FunctionIndex> callers_;
  std::vector<std::vector<FunctionIndex>> users_;
};

// "0x516da0", as in evidence and refusals.
std::string AddressText(VirtualAddress address);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_HOOKS_IMAGE_CODE_H_
