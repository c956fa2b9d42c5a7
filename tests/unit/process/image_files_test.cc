#include "process/image_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "os/unique_fd.h"
#include "unit/process/hanging_tape.h"

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
  FakeClock clock;
  ImageFiles images(nullptr, &clock);
  const Process process(ProcessKey{1, 1}, TargetFiles("/proc", static_cast<uint32_t>(getpid())));
  std::vector<MappedFile> all;
  while (true) {
    absl::StatusOr<MappedFile> view = MappedFile::Map(fd.get(), 0, 0, 1);
    if (!view.ok()) break;
    all.push_back(*std::move(view));
  }
  EXPECT_TRUE(absl::IsUnavailable(images.GetByPath(process, path).status()));
  all.clear();
  clock.Advance(ImageFiles::kAskAgainNs - 1);
  EXPECT_TRUE(absl::IsUnavailable(images.GetByPath(process, path).status())) << "a try may take long";
  clock.Advance(1);
  EXPECT_TRUE(images.GetByPath(process, path).ok());
  unlink(path.c_str());
}

TEST(ImageFilesTest, AFileSystemThatDoesNotAnswerIsTriedOnceASecond) {
  std::string path = testing::TempDir() + "/image_XXXXXX";
  const UniqueFd fd(mkstemp(path.data()));
  HangingTape tape;
  FakeClock clock;
  ImageFiles images(nullptr, &clock);
  const Process process(ProcessKey{1, 1}, TargetFiles("/proc", static_cast<uint32_t>(getpid()), &tape));
  for (int second = 1; second <= 3; ++second) {
    for (int frame = 0; frame < 100; ++frame) {
      EXPECT_TRUE(absl::IsUnavailable(images.GetByPath(process, path).status()));
    }
    EXPECT_EQ(tape.opens, second);
    clock.Advance(ImageFiles::kAskAgainNs);
  }
  tape.hangs = false;
  EXPECT_TRUE(images.GetByPath(process, path).ok());
  EXPECT_TRUE(images.GetByPath(process, path).ok());
  EXPECT_EQ(tape.opens, 4);
  unlink(path.c_str());
}

TEST(ImageFilesTest, FailuresTakeNoPlacesOfFiles) {
  std::string path = testing::TempDir() + "/image_XXXXXX";
  const UniqueFd fd(mkstemp(path.data()));
  HangingTape tape;
  tape.hangs = false;
  ImageFiles images;
  const Process process(ProcessKey{1, 1}, TargetFiles("/proc", static_cast<uint32_t>(getpid()), &tape));
  const auto fail = [&](size_t i) {
    EXPECT_TRUE(absl::IsNotFound(images.GetByPath(process, "/nowhere/" + std::to_string(i)).status()));
  };
  for (size_t i = 0; i < ImageFiles::kMaxFailuresPerProcess; ++i) fail(i);
  // The file is opened once, so that it has one place however often it is asked for.
  for (size_t i = 0; i <= ImageFiles::kMaxFilesPerProcess; ++i) ASSERT_TRUE(images.GetByPath(process, path).ok()) << i;
  fail(0);
  EXPECT_EQ(tape.opens, static_cast<int>(ImageFiles::kMaxFailuresPerProcess + 1));
  // One more than are kept.
  fail(ImageFiles::kMaxFailuresPerProcess);
  const int opens = tape.opens;
  fail(ImageFiles::kMaxFailuresPerProcess);
  EXPECT_TRUE(images.GetByPath(process, path).ok());
  EXPECT_EQ(tape.opens, opens);
  fail(0);
  EXPECT_EQ(tape.opens, opens + 1) << "it was forgotten";
  unlink(path.c_str());
}

TEST(ImageFilesTest, AFileThatIsReadOnceTakesNoPlace) {
  std::string path = testing::TempDir() + "/image_XXXXXX";
  const UniqueFd fd(mkstemp(path.data()));
  ASSERT_EQ(write(fd.get(), "x", 1), 1);
  ImageFiles images;
  const Process process(ProcessKey{1, 1}, TargetFiles("/proc", static_cast<uint32_t>(getpid())));
  for (size_t i = 0; i <= ImageFiles::kMaxFilesPerProcess; ++i) ASSERT_TRUE(images.GetOnce(process, path).ok()) << i;
  const std::weak_ptr<const ImageFile> read = *images.GetOnce(process, path);
  EXPECT_TRUE(read.expired()) << "nobody holds it";
  EXPECT_TRUE(images.GetByPath(process, path).ok());
  unlink(path.c_str());
}

// Two containers that give the runtime to their own user: the copies keep inode, size and time.
TEST(ImageFilesTest, CopiesThatTwoContainersMadeOfOneFileAreNot) {
  ImageFile one = File(kBytes, 70, true), other = File(kBytes, 71, true);
  one.changed_ns = 1'800'000'000'000'000'000;
  other.changed_ns = one.changed_ns + 4'000'000;
  EXPECT_FALSE(IsSameFile(one, other));
  other.changed_ns = one.changed_ns;
  EXPECT_TRUE(IsSameFile(one, other));
  // In one container it is the same file, whose owner was changed once more.
  other.device = one.device;
  ++other.changed_ns;
  EXPECT_TRUE(IsSameFile(one, other));
}

TEST(ImageFilesTest, ContentThatWasChangedInPlaceIsAnotherFileWhateverItsTimeSays) {
  std::string path = testing::TempDir() + "/image_XXXXXX";
  const UniqueFd fd(mkstemp(path.data()));
  ASSERT_EQ(pwrite(fd.get(), "one", 3, 0), 3);
  struct stat before {};
  ASSERT_EQ(fstat(fd.get(), &before), 0);
  ImageFiles images;
  const auto files = [] { return TargetFiles("/proc", static_cast<uint32_t>(getpid())); };
  const auto one = images.GetByPath(Process(ProcessKey{1, 1}, files()), path);
  const auto again = images.GetByPath(Process(ProcessKey{2, 2}, files()), path);
  struct stat after = before;
  while (after.st_ctim.tv_sec == before.st_ctim.tv_sec && after.st_ctim.tv_nsec == before.st_ctim.tv_nsec) {
    ASSERT_EQ(pwrite(fd.get(), "two", 3, 0), 3);
    const timespec times[2] = {before.st_atim, before.st_mtim};
    ASSERT_EQ(futimens(fd.get(), times), 0);
    ASSERT_EQ(fstat(fd.get(), &after), 0);
  }
  const auto two = images.GetByPath(Process(ProcessKey{3, 3}, files()), path);
  unlink(path.c_str());
  ASSERT_TRUE(one.ok() && again.ok() && two.ok());
  EXPECT_EQ(*one, *again);
  EXPECT_NE(*one, *two);
  EXPECT_NE(IdentityText(**one), IdentityText(**two));
  EXPECT_TRUE(IsSameFile(**one, **two)) << "probes are in it already";
}

}  // namespace
}  // namespace clrsampler
