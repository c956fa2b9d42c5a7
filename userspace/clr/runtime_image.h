// The role of one ELF image for .NET, told by what it exports and never by its name. Pure.
//
// Facts (measured: 8.0.0 to 10.0.14 linux-x64 and 10.0.9 linux-arm64 for CoreCLR; 9.0.20 linux-x64 for NativeAOT):
// - libcoreclr.so exports coreclr_initialize and g_dacTable; from 9.0 on DotNetRuntimeContractDescriptor too. Mono's
//   library of the same name exports the first without the second.
// - A single-file host has the runtime linked in and exports DotNetRuntimeInfo and g_dacTable, no coreclr_*.
// - A NativeAOT program or library exports DotNetRuntimeDebugHeader, which begins with the letters DNDH, and nothing
//   else.
// - A standalone GC (libclrgc.so, libclrgcexp.so, or a foreign one) exports GC_Initialize and GC_VersionInfo.
// - The runtimes hold the text "@(#)Version A.B.CCDD.BUILD @Commit: ...", in .data of libcoreclr.so, elsewhere among
//   the constants. NativeAOT has no such text; its metadata keeps the file version of its core library and right behind
//   it the informational version "A.B.C+COMMIT", unless reflection was trimmed away.
#ifndef CLRSAMPLER_CLR_RUNTIME_IMAGE_H_
#define CLRSAMPLER_CLR_RUNTIME_IMAGE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "clr/runtime_facts.h"
#include "formats/elf/elf_image.h"

namespace clrsampler {

enum class RuntimeImageKind : uint8_t {
  kNone,
  kStandaloneGc,
  kMono,
  kNativeAot,
  kSingleFileHost,
  kCoreClr,
};

struct RuntimeExport {
  absl::string_view name;  // a literal
  VirtualAddress address;
  uint64_t size = 0;  // bytes; 0 for some functions
};

struct RuntimeImage {
  RuntimeImageKind kind = RuntimeImageKind::kNone;
  ElfMachine machine = ElfMachine::kX64;
  RuntimeVersion version;              // of CoreCLR and NativeAOT; a standalone GC and Mono have none here
  std::vector<RuntimeExport> exports;  // those that somebody asks for, in no order
};

RuntimeImage ReadRuntimeImage(const ElfImage& image);

enum class LibcFlavour : uint8_t {
  kUnknown,  // no dynamic loader named: a static program, or a loader of another kind
  kGlibc,
  kMusl,
};

// By the dynamic loader that a program asks for: "/lib64/ld-linux-x86-64.so.2", "/lib/ld-musl-aarch64.so.1".
LibcFlavour LibcOfInterpreter(absl::string_view interpreter);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_RUNTIME_IMAGE_H_
