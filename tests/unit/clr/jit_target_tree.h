// A process as /proc would show it, made of files in a temporary folder: PROC/PID/root/tmp is its /tmp.
#ifndef CLRSAMPLER_TESTS_UNIT_CLR_JIT_TARGET_TREE_H_
#define CLRSAMPLER_TESTS_UNIT_CLR_JIT_TARGET_TREE_H_

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "formats/jit/jitdump_writer.h"

namespace clrsampler {

class JitTargetTree {
 public:
  static constexpr uint32_t kPid = 4242;
  static constexpr uint32_t kNamespacePid = 7;

  JitTargetTree() {
    std::string pattern = testing::TempDir() + "/clrsampler-jit-XXXXXX";
    root_ = mkdtemp(pattern.data());
    std::filesystem::create_directories(process() + "/root/tmp");
    std::filesystem::create_directories(process() + "/fd");
  }
  ~JitTargetTree() { std::filesystem::remove_all(root_); }

  const std::string& proc_root() const { return root_; }
  std::string process() const { return absl::StrCat(root_, "/", kPid); }
  std::string InTarget(absl::string_view path) const { return absl::StrCat(process(), "/root", path); }
  std::string jitdump() const { return InTarget("/tmp/jit-7.dump"); }
  std::string perf_map() const { return InTarget("/tmp/perf-7.map"); }

  static void Write(const std::string& path, absl::string_view bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  static void Append(const std::string& path, absl::string_view bytes) {
    std::ofstream(path, std::ios::binary | std::ios::app)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  // As if the process had the file open.
  void HoldOpen(const std::string& path) const { std::filesystem::create_symlink(path, process() + "/fd/3"); }
  void LetGo() const { unlink((process() + "/fd/3").c_str()); }

 private:
  std::string root_;
};

// Records at 1000 ns and later, of the process in the tree.
class JitdumpText {
 public:
  explicit JitdumpText(uint64_t timestamp = 1000, uint32_t pid = JitTargetTree::kNamespacePid) {
    writer_.Header({.version = 1, .elf_machine = 62, .pid = pid, .timestamp = timestamp});
  }
  JitdumpText& Load(absl::string_view name, uint64_t timestamp, uint64_t address, size_t code_bytes = 64) {
    writer_.Load(name, timestamp, address, std::vector<std::byte>(code_bytes));
    return *this;
  }
  const std::string& bytes() const { return writer_.bytes(); }

 private:
  JitdumpWriter writer_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_TESTS_UNIT_CLR_JIT_TARGET_TREE_H_
