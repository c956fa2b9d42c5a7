// Finds which .NET runtime a process holds, and in which form it was deployed.
//
// The runtime is found by what the mapped ELF images export (runtime_image.h), never by a path or a file name. Paths
// are compared for one thing only: whether the runtime lies beside the program, which is what self-contained means.
//
// A program for another machine is run by an emulator, which is the process's own program. To the process the code of
// such a runtime is data: it runs a translation of it, in memory for compiled code (measured: qemu-user 7.2 maps
// nothing of it executable). So no address in that code is ever sampled, and nothing leads from the translation back to
// it.
#ifndef CLRSAMPLER_CLR_RUNTIME_DISCOVERY_H_
#define CLRSAMPLER_CLR_RUNTIME_DISCOVERY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "clr/runtime_image.h"
#include "process/image_files.h"
#include "process/process.h"
#include "status/thread_checker.h"

namespace clrsampler {

enum class DeploymentForm : uint8_t {
  kFrameworkDependent,  // libcoreclr.so lies elsewhere than the program: a shared runtime
  kSelfContained,       // it lies in the program's folder
  kSingleFile,          // the runtime is part of the program
  kNativeAot,
  kEmulated,  // of a program for another machine, of whose deployment nothing is known
};
absl::string_view DeploymentFormText(DeploymentForm form);  // "framework-dependent", as ps prints it
absl::string_view LibcText(LibcFlavour libc);               // "glibc", "musl", "unknown"
absl::string_view MachineText(ElfMachine machine);          // "x64", "arm64", as .NET calls them

struct DotNetRuntime {
  RuntimeImageKind kind = RuntimeImageKind::kNone;
  RuntimeVersion version;
  Mapping mapping;         // executable, of the image that holds the runtime
  uint64_t load_bias = 0;  // what is added to an address in the image; modulo 2^64
  std::vector<RuntimeExport> exports;
  ElfMachine machine = ElfMachine::kX64;
  LibcFlavour libc = LibcFlavour::kUnknown;
  DeploymentForm form = DeploymentForm::kFrameworkDependent;
  bool bundled = false;            // the program carries a bundle of assemblies
  bool bundle_compressed = false;  // those are copied into anonymous memory: no file shows their code
  bool precompiled = false;        // executable ready-to-run code is mapped from files
  std::optional<bool> composite;   // one of those images is a composite; not known for compressed bundles
  // Executable, of a collector in a library of its own, which exports GC_Initialize; nullopt: the built-in one.
  std::optional<Mapping> standalone_gc;

  bool emulated() const { return form == DeploymentForm::kEmulated; }  // from FindEmulated
  // In the process; nullopt: not exported. Known names only: those of runtime_image.cc.
  std::optional<uint64_t> AddressOf(absl::string_view exported_name) const;
};

// "arm64 program under emulation: names are not possible".
std::string EmulationText(const DotNetRuntime& runtime);

// Main loop only.
class RuntimeDiscovery {
 public:
  enum class CacheBy : uint8_t {
    // Device, inode, size and time of change of the opened file: for long runs. Each process opens its images once.
    kFile,
    // The word of /proc/PID/maps about the file: for one look at a whole host, which opens each file once for all
    // processes.
    kMapping,
  };
  RuntimeDiscovery(ImageFiles& images, CacheBy cache_by) : images_(images), cache_by_(cache_by) {}

  // nullopt: no .NET runtime among the mapped images that the process runs, or none that can be opened.
  std::optional<DotNetRuntime> Find(const Process& process);
  // The runtime of an emulated program; for processes in which Find has found none. Reads all mappings, those of data
  // too, and opens what is mapped from its beginning. nullopt: no runtime for another machine is laid out as a program
  // is loaded, or nothing is translated, or it is not known what machine the process's own program is for.
  std::optional<DotNetRuntime> FindEmulated(const Process& process);

 private:
  struct ImageFacts {
    std::optional<ElfMachine> machine;  // of any ELF image
    RuntimeImage runtime;
    std::vector<LoadSegment> segments;  // of a runtime
    LibcFlavour libc = LibcFlavour::kUnknown;
    bool ready_to_run = false;  // a PE file with precompiled code
    bool composite = false;
  };
  struct BundleFacts {
    bool found = false;
    bool compressed = false;
    bool composite = false;
  };
  using FileKey = std::tuple<uint64_t, uint64_t, uint64_t, uint64_t, std::string>;

  std::optional<FileKey> KeyOf(const Process& process, const Mapping& mapping);
  const ImageFacts* FactsOf(const Process& process, const Mapping& mapping);
  const BundleFacts& BundleOf(const Process& process, const Mapping& mapping);
  void SetForm(const Process& process, const ImageFacts& image, DotNetRuntime& runtime);
  std::optional<ElfMachine> MachineOf(const Process& process);  // of its own program

  // A host where programs are built runs thousands of new ones a day.
  static constexpr size_t kMaxFiles = 16 * 1024;

  ImageFiles& images_;
  const CacheBy cache_by_;
  // An image that is held here would keep its file mapped for the whole run; so only what was learnt of it is.
  absl::flat_hash_map<FileKey, std::unique_ptr<const ImageFacts>> facts_;
  absl::flat_hash_map<FileKey, BundleFacts> bundles_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_RUNTIME_DISCOVERY_H_
