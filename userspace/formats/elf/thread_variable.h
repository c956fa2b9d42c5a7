// How code of an image reaches a thread-local variable that the image exports, and where each thread then has it.
//
// Source: the TLS chapters of the psABI of x86-64 and arm64; "ELF Handling For Thread-Local Storage" (Drepper). The
// loader writes what it has decided on into slots of the image, one or two words that a relocation names. Vectors of
// blocks: glibc 2.36 and musl 1.2, sysdeps/*/nptl/tls.h and src/internal/pthread_impl.h. Pure.
#ifndef CLRSAMPLER_FORMATS_ELF_THREAD_VARIABLE_H_
#define CLRSAMPLER_FORMATS_ELF_THREAD_VARIABLE_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "formats/elf/elf_image.h"

namespace clrsampler {

// The image's thread-local variables (PT_TLS): each thread has a block of them.
struct ThreadSegment {
  static constexpr uint64_t kMostBytes = 1 << 20;
  uint64_t memory_bytes = 0;  // at most kMostBytes
  uint64_t alignment = 1;     // a power of two
};

enum class ThreadAccess : uint8_t {
  kNone,        // no slot is for it: static in a program, and unknown in a library
  kOffset,      // a word: the distance from the thread pointer
  kDescriptor,  // two words: a function, and what it is given: such a distance, or the address of the two words below
  kIndex,       // two words: the number of the image's block in the thread's vector, and the place in it
};

struct ThreadVariable {
  ThreadAccess access = ThreadAccess::kNone;
  VirtualAddress slot;              // of kNone: none
  bool module_only = false;         // of kIndex: the slot is for the image's block, and its second word tells nothing
  uint64_t in_block = 0;            // the place in the image's block
  std::optional<ThreadSegment> of;  // the image's block
};

// nullopt: it exports no thread-local variable of that name.
std::optional<ThreadVariable> FindThreadVariable(const ElfImage& image, absl::string_view name);

// The library whose layout a thread's vector of blocks has.
enum class ThreadVectorKind : uint8_t { kUnknown, kGlibc, kMusl };

// The place of a variable in any thread.
struct ThreadPlace {
  int64_t offset = 0;   // from the thread pointer, or in the block
  uint32_t slot = 0;    // of the block in the vector, bytes; 0: there is no vector
  uint32_t module = 0;  // the block's number
  int32_t vector = 0;   // where the vector's address is, from the thread pointer
  int32_t count = 0;    // where the vector's number of entries is, from its address
  friend bool operator==(const ThreadPlace&, const ThreadPlace&) = default;
};

// A word of the process's memory, at an address of it.
using ReadWord = std::function<std::optional<uint64_t>(uint64_t address)>;

// `bias`: what is added to the image's addresses. `is_program`: the image is the process's program. An error says why
// the place can't be told for certain; Unavailable: the loader may not be done yet.
absl::StatusOr<ThreadPlace> PlaceOf(const ThreadVariable& variable, ElfMachine machine, uint64_t bias, bool is_program,
                                    ThreadVectorKind vector, const ReadWord& read);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_ELF_THREAD_VARIABLE_H_
