// The shipped .NET runtime, whose layout made most of the rules. Needs an installed runtime.
#include <glob.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "formats/elf/eh_frame.h"
#include "formats/elf/elf_symbols.h"
#include "os/file_io.h"
#include "os/mapped_file.h"
#include "unit/formats/elf/find_symbol.h"

namespace clrsampler {
namespace {

std::string FirstMatch(const char* pattern) {
  glob_t found{};
  std::string path;
  if (glob(pattern, 0, nullptr, &found) == 0) path = found.gl_pathv[0];
  globfree(&found);
  return path;
}

std::string FindRuntime() {
  for (const char* pattern : {"/usr/share/dotnet/shared/Microsoft.NETCore.App/*/libcoreclr.so",
                              "/usr/lib/dotnet/shared/Microsoft.NETCore.App/*/libcoreclr.so",
                              "/root/.dotnet/shared/Microsoft.NETCore.App/*/libcoreclr.so"}) {
    if (std::string path = FirstMatch(pattern); !path.empty()) return path;
  }
  return "";
}

class ElfRuntimeTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string path = FindRuntime();
    if (path.empty()) {
      if (std::getenv("CLRSAMPLER_REQUIRE_LIVE") != nullptr) FAIL() << "no .NET runtime is installed";
      GTEST_SKIP() << "no .NET runtime is installed";
    }
    auto fd = OpenForReading(path);
    ASSERT_TRUE(fd.ok());
    auto map = MappedFile::Map(fd->get(), 0, 0, 1 << 30);
    ASSERT_TRUE(map.ok());
    file_ = *std::move(map);
    auto image = ElfImage::Parse(file_.bytes());
    ASSERT_TRUE(image.ok());
    image_ = *std::move(image);
  }

  MappedFile file_;
  std::optional<ElfImage> image_;
};

TEST_F(ElfRuntimeTest, CodeOfLibcoreclrIsNotAtItsFileOffset) {
  const auto symbol = FindSymbol(*image_, "coreclr_initialize");
  ASSERT_TRUE(symbol.has_value());
  const auto offset = image_->ToOffset(symbol->address);
  ASSERT_TRUE(offset.has_value());
  EXPECT_NE(offset->value, symbol->address.value)
      << "the shipped library is linked by lld with offset and address apart";
  EXPECT_EQ(image_->ToAddress(*offset), symbol->address);
}

TEST_F(ElfRuntimeTest, ExportsAreNamedAndTheRestHasFunctionStarts) {
  const ElfSymbols symbols = ElfSymbols::Build(*image_, *image_);
  const auto functions = EhFrameTable::Parse(*image_);
  ASSERT_TRUE(functions.ok());
  EXPECT_GT(functions->size(), 10'000u);
  const auto entry = FindSymbol(*image_, "coreclr_execute_assembly");
  ASSERT_TRUE(entry.has_value());
  EXPECT_EQ(symbols.Find({entry->address.value + entry->size / 2})->name, "coreclr_execute_assembly");
  EXPECT_EQ(functions->Find(entry->address)->start, entry->address);
  // A stripped library has tens of exports and thousands of functions: nearly all must be left without a name.
  size_t named = 0, found = 0;
  for (size_t i = 0; i < functions->size(); ++i) {
    const VirtualAddress start = functions->FunctionStart(i);
    const auto bounds = functions->Find(start);
    if (bounds && bounds->start == start && bounds->end_known) ++found;
    if (symbols.Find(start)) ++named;
  }
  EXPECT_EQ(found, functions->size());
  EXPECT_LT(named, functions->size() / 10);
}

TEST_F(ElfRuntimeTest, HasABuildIdAndALinkToItsSymbolFile) {
  EXPECT_EQ(image_->build_id().size(), 20u);
  ASSERT_TRUE(image_->debug_link().has_value());
  EXPECT_EQ(image_->debug_link()->file_name, "libcoreclr.so.dbg");
}

}  // namespace
}  // namespace clrsampler
