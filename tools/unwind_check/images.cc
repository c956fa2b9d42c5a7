// Ready-to-run images in files, mapped as a process would map them, through the profiler's own source of unwind data.
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "formats/unwind/x64_code.h"
#include "os/path_text.h"
#include "unwind_check.h"
#include "unwind_data/r2r_unwind_data.h"

namespace clrsampler {

Process ProcessOfFiles() { return Process(ProcessKey{1, 1}, TargetFiles("/proc", static_cast<uint32_t>(getpid()))); }

std::optional<Mapping> WholeFile(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) {
    std::printf("%s: not there\n", path.c_str());
    return std::nullopt;
  }
  Mapping mapping;
  mapping.start = 0x7f0000000000;
  mapping.end = mapping.start + ((static_cast<uint64_t>(status.st_size) + 4095) & ~uint64_t{4095});
  mapping.device_major = major(status.st_dev);
  mapping.device_minor = minor(status.st_dev);
  mapping.inode = status.st_ino;
  mapping.kind = MappingKind::kFile;
  mapping.path = path;
  return mapping;
}

int CheckImages(const std::string& path) {
  const std::optional<Mapping> whole = WholeFile(path);
  if (!whole) return 1;
  const Mapping& mapping = *whole;
  const uint64_t size = mapping.end - mapping.start;
  const Process process = ProcessOfFiles();
  ImageFiles images;
  FrameTable frames;
  R2rMethods methods(&images, &frames, NameStyle::kRaw);
  R2rUnwindData unwind_data(&methods);

  // From function to function: any byte of an image leads to its tables.
  uint32_t functions = 0, funclets = 0, funclets_by_bytes = 0, wrong_funclets = 0, differences = 0, missing = 0,
           moving_sp = 0, saves = 0, with_epilogue = 0, large = 0;
  uint64_t largest = 0;
  double spent_ns = 0;
  const auto at = [&](uint64_t offset) {
    const uint64_t address = mapping.start + offset;
    return FrameQuery{process, &mapping, address, address, MonotonicTime{5}};
  };
  uint16_t major_version = 0;
  for (uint64_t offset = 0; offset < size;) {
    const auto code = methods.CodeAt(at(offset));
    if (!code) {
      offset += 512;  // the alignment of sections in files
      continue;
    }
    if (code->image->pe().machine() != PeMachine::kX64) return 0;
    major_version = code->image->pe().r2r()->major;
    // Each function of the section, by the image's own table.
    const uint32_t rva = static_cast<uint32_t>(mapping.start + offset - code->address);
    const PeSection* section = code->image->pe().SectionOfRva(rva);
    const uint32_t section_end = section->rva + std::max(section->file_bytes, section->virtual_bytes);
    const uint64_t address_of_rva_0 = code->address - mapping.start;
    const R2rImage& image = *code->image;
    for (uint32_t i = 0; i < image.function_count(); ++i) {
      const R2rFunction known = *image.Function(i);
      if (known.begin < section->rva || known.begin >= section_end) continue;
      ++functions;
      const auto start = std::chrono::steady_clock::now();
      const CodeAt found = unwind_data.At(at(address_of_rva_0 + known.begin));
      spent_ns += std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
      if (found.kind != CodeKind::kManaged || found.managed->end - found.managed->begin != known.end - known.begin) {
        if (++missing <= 3) std::printf("  %08X no unwind data\n", known.begin);
        continue;
      }
      const ManagedFunction& function = *found.managed;
      const uint64_t bytes = function.end - function.begin;
      largest = std::max(largest, bytes);
      large += function.code.size() < bytes ? 1 : 0;
      moving_sp += function.unwind.frame_register != 0 ? 1 : 0;
      for (const UnwindCode& one : function.unwind.codes) saves += one.op == UnwindOp::kSave ? 1 : 0;
      const bool by_bytes = FuncletFrameReady(function.code).has_value();
      funclets += function.funclet ? 1 : 0;
      funclets_by_bytes += by_bytes ? 1 : 0;
      // .NET 8 and 9 (R2R 9): all funclets save rbp and take their parent's; later ones save nothing.
      bool saves_rbp = false;
      for (const UnwindCode& one : function.unwind.codes)
        saves_rbp |= one.op == UnwindOp::kPush && one.reg == kUnwindRbp;
      if ((by_bytes && !function.funclet) || (function.funclet && saves_rbp != by_bytes)) {
        if (++wrong_funclets <= 3)
          std::printf("  %08X funclet %d by bytes %d\n", known.begin, function.funclet, by_bytes);
      }
      if (const std::string difference = PrologueDifference(function); !difference.empty()) {
        if (++differences <= 5) std::printf("  %08X %s\n", known.begin, difference.c_str());
      }
      bool recognised = false;
      EpilogueDifference(function, recognised);
      with_epilogue += recognised ? 1 : 0;
    }
    offset += section_end - rva;
  }
  std::printf(
      "%s R2R %u functions %u missing %u differences %u funclets %u funclets-by-bytes %u wrong-funclets %u moving-sp "
      "%u saves %u "
      "epilogues %u largest %llu without-whole-code %u first-ns %.0f\n",
      FileNameOf(path).data(), major_version, functions, missing, differences, funclets, funclets_by_bytes,
      wrong_funclets, moving_sp, saves, with_epilogue, static_cast<unsigned long long>(largest), large,
      functions == 0 ? 0 : spent_ns / functions);
  return static_cast<int>(missing + differences + wrong_funclets);
}

}  // namespace clrsampler
