// A process that runs an emulator, which has loaded a .NET runtime for another machine.
#ifndef CLRSAMPLER_TESTS_UNIT_CLR_EMULATED_PROCESS_H_
#define CLRSAMPLER_TESTS_UNIT_CLR_EMULATED_PROCESS_H_

#include <elf.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "formats/byte_reader.h"
#include "formats/elf/elf_image.h"
#include "os/file_io.h"
#include "process/process.h"
#include "test_paths.h"
#include "unit/process/mapping_of_file.h"

namespace clrsampler {

// Its root is that of the machine. The emulator is a library of this machine with code, as /proc says of qemu-user 7.2.
class EmulatedProcess {
 public:
  static constexpr uint64_t kTranslated = 0x7fb334e00000, kEmulator = 0x7fb33da28000;

  EmulatedProcess() {
    std::string pattern = (std::filesystem::temp_directory_path() / "emulated_process_XXXXXX").string();
    EXPECT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    std::filesystem::create_directories(folder_ / "42");
    std::filesystem::create_directory_symlink("/", folder_ / "42" / "root");
    process_.emplace(ProcessKey{42, 1}, TargetFiles(folder_.string(), 42));
    process_->comm = "qemu-aarch64-st";
    process_->executable = RuntimeFixture("IMPOSTOR/image");
    Mapping program = MappingOfFile(process_->executable, kEmulator, 0x1000, 0x1000);
    process_->mappings.Insert(program);
    Mapping translated;
    translated.start = kTranslated;
    translated.end = kTranslated + 0x7fff000;
    translated.kind = MappingKind::kJitMemory;
    process_->mappings.Insert(translated);
  }
  ~EmulatedProcess() { std::filesystem::remove_all(folder_); }

  Process& process() { return *process_; }

  // The runtime of a machine, whose code lies 64 KiB behind its place in the file, as in those of .NET for arm64. It
  // exports no function, which would not be where its table says.
  std::string Runtime(uint16_t machine = EM_AARCH64) {
    std::string bytes = *ReadWholeFile(RuntimeFixture("SINGLE_FILE/image"), 16 << 20);
    std::memcpy(bytes.data() + offsetof(Elf64_Ehdr, e_machine), &machine, sizeof machine);
    Elf64_Ehdr header;
    std::memcpy(&header, bytes.data(), sizeof header);
    for (size_t i = 0; i < header.e_phnum; ++i) {
      char* const at = bytes.data() + header.e_phoff + i * sizeof(Elf64_Phdr);
      Elf64_Phdr segment;
      std::memcpy(&segment, at, sizeof segment);
      if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0) segment.p_vaddr += kMoved;
      std::memcpy(at, &segment, sizeof segment);
    }
    const std::string path = (folder_ / absl::StrCat("program-", machine)).string();
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return path;
  }

  // The lines of maps for an image that qemu-user has loaded: no segment is executable, and what is between is
  // reserved.
  std::string Loaded(const std::string& path, uint64_t base, absl::string_view permissions = "r--p") {
    const auto bytes = *ReadWholeFile(path, 16 << 20);
    const ElfImage image = *ElfImage::Parse(AsBytes(bytes));
    std::string text;
    for (const LoadSegment& segment : image.segments()) {
      const uint64_t start = base + (segment.address.value & ~uint64_t{0xfff});
      text += Line(path, start, start + 0x1000, segment.executable ? permissions : "r--p",
                   segment.offset.value & ~uint64_t{0xfff});
    }
    return text;
  }
  std::string Line(const std::string& path, uint64_t start, uint64_t end, absl::string_view permissions,
                   uint64_t offset) {
    struct stat status {};
    EXPECT_EQ(stat(path.c_str(), &status), 0) << path;
    return absl::StrFormat("%x-%x %s %08x %02x:%02x %d                        %s\n", start, end, permissions, offset,
                           major(status.st_dev), minor(status.st_dev), status.st_ino, path);
  }
  void SetMaps(const std::string& text) { std::ofstream(folder_ / "42" / "maps") << text; }

 private:
  static constexpr uint64_t kMoved = 0x10000;

  std::filesystem::path folder_;
  std::optional<Process> process_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_TESTS_UNIT_CLR_EMULATED_PROCESS_H_
