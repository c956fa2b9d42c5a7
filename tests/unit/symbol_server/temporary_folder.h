#ifndef CLRSAMPLER_TESTS_UNIT_SYMBOL_SERVER_TEMPORARY_FOLDER_H_
#define CLRSAMPLER_TESTS_UNIT_SYMBOL_SERVER_TEMPORARY_FOLDER_H_

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "formats/byte_reader.h"
#include "formats/elf/elf_image.h"
#include "os/file_io.h"
#include "symbol_server/symbol_keys.h"
#include "test_paths.h"

namespace clrsampler {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    char path[] = "/tmp/clrsampler_symbols_XXXXXX";
    path_ = mkdtemp(path);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

  void Write(const std::string& name, const std::string& content) const {
    std::ofstream(path_ + "/" + name, std::ios::binary) << content;
  }
  std::set<std::string> Names() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) names.insert(entry.path().filename());
    return names;
  }

 private:
  std::string path_;
};

inline std::string FixtureBytes(const std::string& name) { return *ReadWholeFile(ElfFixture(name), 64 << 20); }

// The build id of the stripped fixture, whose debug file is libstripped.so.dbg.
inline SymbolFileKey FixtureKey() {
  const std::string bytes = FixtureBytes("libstripped.so");
  return *ElfDebugKey(ElfImage::Parse(AsBytes(bytes))->build_id(), "/lib/libstripped.so");
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_TESTS_UNIT_SYMBOL_SERVER_TEMPORARY_FOLDER_H_
