#include "process/image_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "os/unique_fd.h"

namespace clrsampler {
namespace {

ImageFile File(const std::string& bytes, uint64_t device, bool overlay) {
  std::string path = testing::TempDir() + "/image_XXXXXX";
  const UniqueFd fd(mkstemp(path.data()));
  EXPECT_EQ(write(fd.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  unlink(path.c_str());
  ImageFile file;
  file.device = device;
  file.inode = 7;
  file.size = bytes.size();
  file.modified_ns = 1'700'000'000'000'000'000;
  file.overlay = overlay;
  auto content = MappedFile::Map(fd.get(), 0, 0, ImageFiles::kMaxImageBytes);
  EXPECT_TRUE(content.ok()) << content.status();
  file.content = *std::move(content);
  return file;
}

const std::string kBytes(10'000, 'x');

TEST(ImageFilesTest, OneFileBelowTwoContainersIsTheSame) {
  EXPECT_TRUE(IsSameFile(File(kBytes, 70, true), File(kBytes, 71, true)));
  EXPECT_TRUE(IsSameFile(File(kBytes, 70, false), File(kBytes, 70, false)));
}

TEST(ImageFilesTest, FilesOfOtherDevicesOrTimesOrContentsAreNot) {
  EXPECT_FALSE(IsSameFile(File(kBytes, 70, true), File(kBytes, 71, false)));
  EXPECT_FALSE(IsSameFile(File(kBytes, 70, false), File(kBytes, 71, false)));
  std::string other = kBytes;
  other[100] = 'y';
  EXPECT_FALSE(IsSameFile(File(kBytes, 70, true), File(other, 71, true)));
  ImageFile later = File(kBytes, 71, true);
  ++later.modified_ns;
  EXPECT_FALSE(IsSameFile(File(kBytes, 70, true), later));
}

TEST(ImageFilesTest, AProcessCantTakeTheFilesOfOthersTheirRoom) {
  namespace fs = std::filesystem;
  std::string pattern = testing::TempDir() + "/images_XXXXXX";
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  const fs::path folder = pattern;
  const auto path_of = [&](size_t i) { return (folder / std::to_string(i)).string(); };
  for (size_t i = 0; i < ImageFiles::kMaxFilesPerProcess + 2; ++i) std::ofstream(path_of(i)) << "x";
  ImageFiles images;
  const Process hostile(ProcessKey{1, 1}, TargetFiles("/proc", static_cast<uint32_t>(getpid())));
  const Process other(ProcessKey{2, 1}, TargetFiles("/proc", static_cast<uint32_t>(getpid())));
  for (size_t i = 0; i < ImageFiles::kMaxFilesPerProcess; ++i) {
    ASSERT_TRUE(images.GetByPath(hostile, path_of(i)).ok()) << i;
  }
  const auto refused = images.GetByPath(hostile, path_of(ImageFiles::kMaxFilesPerProcess));
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status())) << refused.status();
  EXPECT_TRUE(images.GetByPath(hostile, path_of(0)).ok()) << "it has that one";
  EXPECT_TRUE(images.GetByPath(other, path_of(ImageFiles::kMaxFilesPerProcess + 1)).ok());
  fs::remove_all(folder);
}

TEST(ImageFilesTest, WithoutRoomForAnyFileItIsAskedForAgain) {
  std::string path = testing::TempDir() + "/image_XXXXXX";
  const UniqueFd fd(mkstemp(path.data()));
  ASSERT_EQ(write(fd.get(), "x", 1), 1);
  ImageFiles images;
  const Process process(ProcessKey{1, 1}, TargetFiles("/proc", static_cast<uint32_t>(getpid())));
  std::vector<MappedFile> all;
  while (true) {
    absl::StatusOr<MappedFile> view = MappedFile::Map(fd.get(), 0, 0, 1);
    if (!view.ok()) break;
    all.push_back(*std::move(view));
  }
  EXPECT_TRUE(absl::IsUnavailable(images.GetByPath(process, path).status()));
  all.clear();
  EXPECT_TRUE(images.GetByPath(process, path).ok());
  unlink(path.c_str());
}

}  // namespace
}  // namespace clrsampler
