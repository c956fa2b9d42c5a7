#include "os/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
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

// The kernel has a limit on the mappings of a process.
TEST(MappedFileTest, ManyMissingPagesTakeOneMapping) {
  constexpr size_t kPage = 4096, kPages = 400;
  const UniqueFd fd = FileOf(std::string(kPages * kPage, 'x'));
  const absl::StatusOr<MappedFile> file = MappedFile::Map(fd.get(), 0, 0, kPages * kPage);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(ftruncate(fd.get(), kPage), 0);
  // From the end on, so that each of them is missed.
  for (size_t page = kPages - 1; page > 1; page -= 2) ASSERT_EQ(file->bytes()[page * kPage], std::byte{0});
  EXPECT_EQ(file->bytes()[0], std::byte{'x'});
  const absl::StatusOr<std::string> text = ReadWholeFile("/proc/self/maps", 1 << 20);
  ASSERT_TRUE(text.ok()) << text.status();
  const auto begin = reinterpret_cast<uint64_t>(file->bytes().data());
  size_t mappings = 0;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    const uint64_t start = std::stoull(line, nullptr, 16);
    if (start >= begin && start < begin + kPages * kPage) ++mappings;
  }
  EXPECT_LE(mappings, 2u);
}

// A huge page can't be replaced in part.
// One more huge page than the system has, for as long as it lives. Root may have it.
class HugePage {
 public:
  HugePage() {
    if (std::ifstream(kSetting) >> before_) Set(before_ + 1);
  }
  ~HugePage() { Set(before_); }
  HugePage(const HugePage&) = delete;
  HugePage& operator=(const HugePage&) = delete;

 private:
  static constexpr char kSetting[] = "/proc/sys/vm/nr_hugepages";
  static void Set(uint64_t pages) { std::ofstream(kSetting) << pages << std::flush; }
  uint64_t before_ = 0;
};

TEST(MappedFileTest, AFileOfHugePagesMayBeTruncatedToo) {
  constexpr size_t kBytes = 2 << 20;
  const HugePage page;
  const UniqueFd fd(memfd_create("huge", MFD_HUGETLB | MFD_CLOEXEC));
  if (!fd.valid() || ftruncate(fd.get(), kBytes) != 0) GTEST_SKIP() << "the kernel has no huge pages";
  const absl::StatusOr<MappedFile> file = MappedFile::Map(fd.get(), 0, 0, kBytes);
  if (!file.ok()) GTEST_SKIP() << "no huge page is free: " << file.status();
  ASSERT_EQ(ftruncate(fd.get(), 0), 0);
  EXPECT_EQ(file->bytes()[5 * 4096], std::byte{0});
  EXPECT_TRUE(file->damaged());
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
