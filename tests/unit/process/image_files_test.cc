#include "process/image_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

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

}  // namespace
}  // namespace clrsampler
