// Symbol names of C++ (Itanium ABI) and Rust (legacy mangling) as people write them.
//
// Total: a name that can't be demangled comes back as it is. Symbol names come from the target's files, and a mangled
// name of 100 bytes can stand for gigabytes of text: input, output and recursion are bounded.
#ifndef CLRSAMPLER_SYMBOLS_DEMANGLE_H_
#define CLRSAMPLER_SYMBOLS_DEMANGLE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace clrsampler {

// Names longer than this stay mangled; texts longer than that are given up, and the name stays mangled.
constexpr size_t kMaxMangledBytes = 8 * 1024;
constexpr size_t kMaxDemangledBytes = 32 * 1024;

// With parameters, return type of templates, and the compiler's clone marks:
// "void ns::Sort<int>(int*, int*)", "Parse(char const*) [clone .cold]". A symbol version ("@@GLIBC_2.34") is dropped.
std::string DemangleFull(absl::string_view symbol);

// The name alone: "ns::Sort<int>", "Parse". Parts that the compiler split off (.cold, .part.0, .constprop.0, .llvm.123)
// read like their function; std::string reads so; template arguments of names over 120 characters become "<...>".
std::string DemangleShort(absl::string_view symbol);

}  // namespace clrsampler

#endif  // CLRSAMPLER_SYMBOLS_DEMANGLE_H_
