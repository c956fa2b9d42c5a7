// A symbol server that gives out one file for any key, once the test lets it.
#ifndef CLRSAMPLER_TESTS_UNIT_SYMBOL_SERVER_FAKE_SYMBOL_FILES_H_
#define CLRSAMPLER_TESTS_UNIT_SYMBOL_SERVER_FAKE_SYMBOL_FILES_H_

#include <memory>
#include <string>
#include <vector>

#include "os/file_io.h"
#include "os/mapped_file.h"
#include "symbol_server/symbol_files.h"

namespace clrsampler {

class FakeSymbolFiles : public SymbolFiles {
 public:
  Answer Get(const SymbolFileKey& key) override {
    asked.push_back(key);
    return file == nullptr ? Answer{without_file, nullptr} : Answer{State::kHere, file};
  }
  uint64_t generation() const override { return generations; }

  void Arrives(const std::string& path) {
    const auto fd = OpenForReading(path);
    auto arrived = std::make_shared<ImageFile>();
    arrived->path = path;
    arrived->content = *MappedFile::Map(fd->get(), 0, 0, 64 << 20);
    file = std::move(arrived);
    ++generations;
  }

  std::vector<SymbolFileKey> asked;
  std::shared_ptr<const ImageFile> file;
  State without_file = State::kWaiting;
  uint64_t generations = 0;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_TESTS_UNIT_SYMBOL_SERVER_FAKE_SYMBOL_FILES_H_
