// The two containers of ReadyToRun images: the sparse array and the hash table of "NativeFormat".
//
// Layout: dotnet/runtime src/coreclr/tools/Common/Internal/NativeFormat/NativeFormatWriter.cs and
// src/coreclr/vm/nativeformatreader.h (8.0 to 11.0, unchanged). Pure; every read is inside the section given; work is
// linear in its size.
#ifndef CLRSAMPLER_FORMATS_PE_NATIVE_FORMAT_H_
#define CLRSAMPLER_FORMATS_PE_NATIVE_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace clrsampler {

struct NativeNumber {
  uint32_t value = 0;
  uint64_t next = 0;  // offset behind it
};
std::optional<NativeNumber> ReadNativeUnsigned(std::span<const std::byte> section, uint64_t offset);

struct NativeSigned {
  int32_t value = 0;
  uint64_t next = 0;
};
std::optional<NativeSigned> ReadNativeSigned(std::span<const std::byte> section, uint64_t offset);

// An element of section 103, and what follows a signature in 109: which runtime function, perhaps with fixups behind.
std::optional<uint32_t> ReadEntryPoint(std::span<const std::byte> section, uint64_t offset);

// Number of indexes of a NativeArray; an index need not have an element.
absl::StatusOr<uint32_t> NativeArrayLength(std::span<const std::byte> section);

// The offset of the element of one index; nullopt: it has none.
absl::StatusOr<std::optional<uint64_t>> FindInNativeArray(std::span<const std::byte> section, uint32_t index);

// Calls `visit(index, offset of the element)` for the elements of the first `indexes`, in order. An error of `visit`
// ends it and is returned. A section of 64 MB can claim 2^30 indexes without an element, and each takes time.
absl::Status ForEachInNativeArray(std::span<const std::byte> section, uint32_t indexes,
                                  absl::FunctionRef<absl::Status(uint32_t index, uint64_t offset)> visit);

// Calls `visit(offset of the payload)` for every entry. An error of `visit` ends it and is returned.
absl::Status ForEachInNativeHashtable(std::span<const std::byte> section,
                                      absl::FunctionRef<absl::Status(uint64_t offset)> visit);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_PE_NATIVE_FORMAT_H_
