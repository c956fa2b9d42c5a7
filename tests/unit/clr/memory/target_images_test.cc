#include "clr/memory/target_images.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_format.h"
#include "os/clock.h"

namespace clrsampler {
namespace {

namespace fs = std::filesystem;

class ManualClock : public Clock {
 public:
  MonotonicTime Now() const override { return now; }
  MonotonicTime now{100 * kSecondNs};
};

// A process whose maps are a file.
class TargetImagesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "target_images_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    proc_ = pattern;
    fs::create_directories(proc_ / "42");
    process_.emplace(ProcessKey{42, 1}, TargetFiles(proc_.string(), 42));
    target_.emplace(*process_, images_, clock_);
  }
  void TearDown() override { fs::remove_all(proc_); }

  static uint64_t AddressOf(int assembly) {
    return 0x7f0000000000 + uint64_t{0x10000} * static_cast<uint64_t>(assembly);
  }
  // The process has so many assemblies, one behind the other, and the path of each is so long.
  void Map(int assemblies, size_t path_bytes = 40) {
    std::ofstream maps(proc_ / "42" / "maps");
    for (int i = 0; i < assemblies; ++i) {
      maps << absl::StrFormat("%x-%x r--s 00000000 fe:00 %d /%s\n", AddressOf(i), AddressOf(i) + 0x4000, 100 + i,
                              std::string(path_bytes, 'a'));
    }
  }
  bool Has(int assembly) { return target_->FileMappingAt(AddressOf(assembly) + 0x100) != nullptr; }

  fs::path proc_;
  ManualClock clock_;
  ImageFiles images_;
  std::optional<Process> process_;
  std::optional<TargetImages> target_;
};

TEST_F(TargetImagesTest, AssembliesAreFoundAsSoonAsTheyAreMapped) {
  for (int assembly = 0; assembly < 200; ++assembly) {
    Map(assembly + 1);
    EXPECT_TRUE(Has(assembly)) << "no time has passed since the last was mapped";
    EXPECT_FALSE(Has(assembly + 1));
  }
}

TEST_F(TargetImagesTest, AnAddressBetweenMappingsIsInNone) {
  Map(2);
  EXPECT_NE(target_->FileMappingAt(AddressOf(0) + 0x3fff), nullptr);
  EXPECT_EQ(target_->FileMappingAt(AddressOf(0) + 0x4000), nullptr);
  EXPECT_EQ(target_->FileMappingAt(AddressOf(0) - 1), nullptr);
}

// 4 MB each time: eight are read at once, and then less than one a second.
TEST_F(TargetImagesTest, ManyBytesAreNotReadAgainAndAgain) {
  Map(1000, 4000);
  int found = 0;
  for (int assembly = 1000; assembly < 1030; ++assembly) {
    EXPECT_FALSE(Has(assembly));
    Map(assembly + 1, 4000);
    found += Has(assembly) ? 1 : 0;
  }
  EXPECT_GE(found, 2);
  EXPECT_LE(found, 6);
  EXPECT_FALSE(Has(1029));
  clock_.now.ns += kSecondNs;
  EXPECT_TRUE(Has(1029));
  EXPECT_TRUE(Has(0)) << "what is known takes no reading";
}

TEST_F(TargetImagesTest, AProcessThatIsGoneHasNone) {
  EXPECT_FALSE(Has(0));
  clock_.now.ns -= 10 * kSecondNs;
  EXPECT_FALSE(Has(0)) << "time may go backwards in a saved stream";
}

}  // namespace
}  // namespace clrsampler
