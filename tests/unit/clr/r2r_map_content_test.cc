// Maps made from images against those that crossgen2 wrote when it compiled them (tests/testdata/r2r).
#include "clr/r2r_map_content.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "clr/r2r_map_file.h"
#include "formats/jit/r2rmap_writer.h"
#include "os/unique_fd.h"
#include "test_paths.h"

namespace clrsampler {
namespace {

using ::testing::HasSubstr;

struct Image {
  const char* folder;
  const char* dll;
  const char* map;
};

class R2rMapContentTest : public ::testing::TestWithParam<Image> {
 protected:
  std::string Folder() const { return TestData(absl::StrCat("r2r/", GetParam().folder)); }
  R2rImageFile Open() const {
    absl::StatusOr<R2rImageFile> file = R2rImageFile::Open(absl::StrCat(Folder(), "/", GetParam().dll), {});
    EXPECT_TRUE(file.ok()) << file.status();
    return *std::move(file);
  }
};

TEST_P(R2rMapContentTest, TheMapIsThatOfTheCompiler) {
  std::ifstream file(absl::StrCat(Folder(), "/", GetParam().map), std::ios::binary);
  const std::string expected(std::istreambuf_iterator<char>(file), {});
  R2rImageFile image = Open();
  const absl::StatusOr<R2rMapContent> content = R2rMapContentOf(image.image(), image.assemblies());
  ASSERT_TRUE(content.ok()) << content.status();
  EXPECT_EQ(content->nameless, 0u);
  EXPECT_EQ(WriteR2rMap(content->map), expected);
  EXPECT_EQ(R2rMapFileNameOf(image.image().pe()), GetParam().map);
}

// A file with this content.
std::shared_ptr<const ImageFile> FileOf(const std::string& content) {
  const std::string path = absl::StrCat(::testing::TempDir(), "content.", getpid(), ".r2rmap");
  std::ofstream(path, std::ios::binary) << content;
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::filesystem::remove(path);
  absl::StatusOr<MappedFile> mapped = MappedFile::Map(fd.get(), 0, 0, 1 << 30);
  EXPECT_TRUE(mapped.ok()) << mapped.status();
  auto file = std::make_shared<ImageFile>();
  if (mapped.ok()) file->content = *std::move(mapped);
  return file;
}

TEST_P(R2rMapContentTest, TheMapIsTakenForTheImage) {
  R2rImageFile image = Open();
  const absl::StatusOr<R2rMapContent> content = R2rMapContentOf(image.image(), image.assemblies());
  ASSERT_TRUE(content.ok()) << content.status();
  const absl::StatusOr<R2rMapFile> checked = R2rMapFile::Check(FileOf(WriteR2rMap(content->map)), image.image());
  ASSERT_TRUE(checked.ok()) << checked.status();
  for (const R2rMapRow& row : content->map.rows) EXPECT_EQ(checked->RowAt(row.rva), row.name);
}

// A file of 512 MiB has room for 90 million rows, which would take gigabytes.
TEST_P(R2rMapContentTest, AMapWithMoreRowsThanTheImageHasFunctionsIsRefused) {
  R2rImageFile image = Open();
  absl::StatusOr<R2rMapContent> content = R2rMapContentOf(image.image(), image.assemblies());
  ASSERT_TRUE(content.ok()) << content.status();
  content->map.rows.resize(image.image().function_count() + 1, content->map.rows.front());
  const absl::Status refused = R2rMapFile::Check(FileOf(WriteR2rMap(content->map)), image.image()).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
}

INSTANTIATE_TEST_SUITE_P(, R2rMapContentTest,
                         ::testing::Values(Image{"8.0.30-x64", "shapes.dll", "shapes.ni.r2rmap"},
                                           Image{"8.0.30-arm64", "shapes.dll", "shapes.ni.r2rmap"},
                                           Image{"9.0.19-x64", "shapes.dll", "shapes.ni.r2rmap"},
                                           Image{"9.0.19-arm64", "shapes.dll", "shapes.ni.r2rmap"},
                                           Image{"10.0.14-x64", "shapes.dll", "shapes.ni.r2rmap"},
                                           Image{"10.0.14-arm64", "shapes.dll", "shapes.ni.r2rmap"},
                                           Image{"10.0.14-x64-hot-cold", "shapes.dll", "shapes.ni.r2rmap"},
                                           Image{"10.0.14-x64-composite", "both.r2r.dll", "both.r2r.ni.r2rmap"}));

TEST(R2rMapContentOfOthersTest, AnAssemblyWithoutPrecompiledCodeIsRefused) {
  const absl::StatusOr<R2rImageFile> file = R2rImageFile::Open(TestData("r2r/10.0.14-x64-composite/shapes.dll"), {});
  EXPECT_EQ(file.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(file.status().message()), HasSubstr("shapes.dll"));
}

}  // namespace
}  // namespace clrsampler
