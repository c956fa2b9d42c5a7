#include "os/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "os/file_io.h"
#include "os/unique_fd.h"

namespace clrsampler {
namespace {

UniqueFd FileOf(const std::string& text) {
  UniqueFd fd(memfd_create("mapped_file_test", MFD_CLOEXEC));
  EXPECT_TRUE(WriteAll(fd.get(), text).ok());
  return fd;
}

TEST(MappedFileTest, ShowsAPartAtAnyOffset) {
  const UniqueFd fd = FileOf(std::string(5000, 'a') + "hello" + std::string(5000, 'b'));
  const auto file = MappedFile::Map(fd.get(), 5000, 5, 1 << 20);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()), "hello");
  EXPECT_FALSE(file->damaged());
}

TEST(MappedFileTest, RefusesWhatIsNotThereOrTooLarge) {
  const UniqueFd fd = FileOf("0123456789");
  EXPECT_FALSE(MappedFile::Map(fd.get(), 11, 0, 100).ok());
  EXPECT_FALSE(MappedFile::Map(fd.get(), 5, 6, 100).ok());
  EXPECT_FALSE(MappedFile::Map(fd.get(), 0, 0, 9).ok());
  EXPECT_TRUE(MappedFile::Map(fd.get(), 10, 0, 100)->bytes().empty());
}

TEST(MappedFileTest, AFileTruncatedWhileMappedReadsAsZeroesAndSaysSo) {
  const UniqueFd fd = FileOf(std::string(3 * 4096, 'x'));
  auto file = MappedFile::Map(fd.get(), 0, 0, 1 << 20);
  ASSERT_TRUE(file.ok());
  ASSERT_EQ(ftruncate(fd.get(), 100), 0);
  EXPECT_EQ(file->bytes()[10], std::byte{'x'});
  EXPECT_FALSE(file->damaged());
  EXPECT_EQ(file->bytes()[2 * 4096 + 5], std::byte{0});
  EXPECT_TRUE(file->damaged());
  // The guard moves with the view.
  const MappedFile moved = *std::move(file);
  EXPECT_EQ(moved.bytes()[4096], std::byte{0});
  EXPECT_TRUE(moved.damaged());
}

TEST(MappedFileTest, PagesThatWereDroppedAreReadAgain) {
  constexpr size_t kBytes = 1 << 20;
  const UniqueFd fd = FileOf(std::string(kBytes, 'x'));
  const absl::StatusOr<MappedFile> file = MappedFile::Map(fd.get(), 0, 0, kBytes);
  ASSERT_TRUE(file.ok()) << file.status();
  const auto sum = [&] {
    uint64_t total = 0;
    for (const std::byte byte : file->bytes()) total += static_cast<uint64_t>(byte);
    return total;
  };
  const auto faults = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
  };
  EXPECT_EQ(sum(), kBytes * 'x');
  // The kernel may take some of its own accord, to balance memory, but not each time.
  long least = 1000;
  for (int i = 0; i < 20 && least >= 2; ++i) {
    const auto earlier = faults();
    EXPECT_EQ(sum(), kBytes * 'x');
    least = std::min(least, faults() - earlier);
  }
  EXPECT_LT(least, 2);
  MappedFile::DropResidentPages();
  const auto before = faults();
  EXPECT_EQ(sum(), kBytes * 'x');
  EXPECT_GE(faults() - before, static_cast<long>(kBytes / 4096 / 16));  // the kernel maps 16 pages at a fault
  EXPECT_FALSE(file->damaged());
}

TEST(MappedFileTest, ManyViewsComeAndGo) {
  const UniqueFd fd = FileOf("x");
  for (int i = 0; i < 10'000; ++i) ASSERT_TRUE(MappedFile::Map(fd.get(), 0, 0, 1).ok()) << i;
}

}  // namespace
}  // namespace clrsampler
