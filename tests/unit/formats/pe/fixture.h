// The images of tests/testdata/r2r and what crossgen2 wrote about them.
#ifndef CLRSAMPLER_TESTS_UNIT_FORMATS_PE_FIXTURE_H_
#define CLRSAMPLER_TESTS_UNIT_FORMATS_PE_FIXTURE_H_

#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"
#include "formats/pe/r2r_image.h"
#include "test_paths.h"

namespace clrsampler {

inline std::string ReadFixture(const std::string& path) {
  std::ifstream file(absl::StrCat(TestData("r2r/"), path), std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

struct FixtureMap {
  std::string signature;
  std::map<uint32_t, std::string> names;  // by RVA
  std::map<uint32_t, uint32_t> bytes;
};

inline FixtureMap ReadFixtureMap(const std::string& path) {
  FixtureMap map;
  std::istringstream text(ReadFixture(path));
  for (std::string line; std::getline(text, line);) {
    const size_t first = line.find(' '), second = line.find(' ', first + 1);
    const uint32_t rva = static_cast<uint32_t>(std::stoul(line.substr(0, first), nullptr, 16));
    if (rva == 0xFFFFFFFF) map.signature = line.substr(second + 1);
    if (rva >= 0xFFFFFF00) continue;
    map.names[rva] = line.substr(second + 1);
    map.bytes[rva] = static_cast<uint32_t>(std::stoul(line.substr(first + 1, second - first - 1), nullptr, 16));
  }
  return map;
}

// Assemblies of one folder of the fixtures; counts what was asked for.
class FixtureOpener : public AssemblyOpener {
 public:
  explicit FixtureOpener(std::string folder) : folder_(std::move(folder)) {}
  std::optional<OpenedAssembly> Open(absl::string_view simple_name) override {
    asked.push_back(std::string(simple_name));
    const auto replaced = contents.find(std::string(simple_name));
    auto bytes = std::make_shared<std::string>(
        replaced != contents.end() ? replaced->second : ReadFixture(absl::StrCat(folder_, "/", simple_name, ".dll")));
    if (bytes->empty()) return std::nullopt;
    return OpenedAssembly{AsBytes(*bytes), bytes};
  }
  std::vector<std::string> asked;
  std::map<std::string, std::string> contents;  // instead of the files

 private:
  std::string folder_;
};

inline absl::StatusOr<std::unique_ptr<R2rImage>> OpenR2r(absl::string_view bytes) {
  absl::StatusOr<PeImage> pe = PeImage::Parse(AsBytes(bytes));
  if (!pe.ok()) return pe.status();
  return R2rImage::Open(*std::move(pe), "shapes");
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_TESTS_UNIT_FORMATS_PE_FIXTURE_H_
