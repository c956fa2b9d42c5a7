#include "clr/r2r_assemblies.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

#include "formats/byte_reader.h"
#include "unit/clr/bundle_host.h"
#include "unit/process/mapping_of_file.h"

namespace clrsampler {
namespace {

// Compressed single-file programs, each of which is one process's.
class R2rAssembliesTest : public testing::Test {
 protected:
  static constexpr uint64_t kMost = 100'000, kMostOfOne = 60'000;

  void SetUp() override {
    char path[] = "/tmp/r2r_assemblies_test.XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    folder_ = path;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // The size of an assembly that `process` opens; 0: it is not there.
  size_t Opened(uint32_t number, const std::string& assembly) {
    const std::string path = absl::StrCat(folder_, "/host", number);
    if (!std::filesystem::exists(path)) {
      // They differ, so that none is taken for another.
      const std::string text(40'000, static_cast<char>('a' + number));
      std::ofstream(path, std::ios::binary)
          << BundleHost({{"first.txt", "no image"}, {"one.dll", text, true}, {"two.dll", text + "2", true}});
    }
    Process process(ProcessKey{1, number}, TargetFiles("/proc", static_cast<uint32_t>(getpid())));
    process.ends = ends_;
    const Mapping mapping = MappingOfFile(path, 0x7f00'0001'0000, 0, kBundleFiles);
    const auto place = files_.FindInFile({process, &mapping, mapping.start, mapping.start, MonotonicTime{5}});
    if (!place) {
      ADD_FAILURE() << "no bundle";
      return 0;
    }
    const auto opened = R2rAssemblies(&images_, files_, process, *place->file, *place->image).Open(assembly);
    return opened ? opened->bytes.size() : 0;
  }

  std::string folder_;
  ImageFiles images_;
  const std::shared_ptr<ProgramEnds> ends_ = std::make_shared<ProgramEnds>();
  R2rMethodCounters counters_;
  R2rFiles files_{&images_, {.max_unpacked_bytes = kMost, .max_unpacked_bytes_per_process = kMostOfOne}, counters_};
};

TEST_F(R2rAssembliesTest, AProcessHasAShareOfWhatIsUnpacked) {
  EXPECT_EQ(Opened(1, "one"), 40'000u);
  EXPECT_EQ(Opened(1, "two"), 0u) << "more than one process may have";
  EXPECT_EQ(Opened(1, "one"), 40'000u) << "what is there stays";
  EXPECT_EQ(files_.heap_bytes() / 1000, 40u);
}

TEST_F(R2rAssembliesTest, AllProcessesTogetherHaveABound) {
  EXPECT_EQ(Opened(1, "one"), 40'000u);
  EXPECT_EQ(Opened(2, "one"), 40'000u);
  EXPECT_EQ(Opened(3, "one"), 0u);
  ends_->Announce({1, 1});
  EXPECT_EQ(Opened(3, "one"), 40'000u) << "a file that nobody uses makes room";
}

}  // namespace
}  // namespace clrsampler
