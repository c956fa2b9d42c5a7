#include "symbols/native_lines/native_lines.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <deque>
#include <filesystem>
#include <string>
#include <vector>

#include "formats/byte_reader.h"
#include "formats/elf/elf_image.h"
#include "os/file_io.h"
#include "test_paths.h"
#include "unit/formats/elf/find_symbol.h"
#include "unit/process/mapping_of_file.h"

namespace clrsampler {
namespace {

constexpr uint64_t kBase = 0x7f0000000000;

// Says the line 57 of every address, and keeps which files it was given.
class Line57 : public LineHelper {
 public:
  bool Send(absl::string_view bytes, int file) override {
    const std::optional<LineQuestion> question = ParseLineQuestion(bytes);
    struct stat status {};
    EXPECT_EQ(fstat(file, &status), 0);
    inodes.push_back(status.st_ino);
    addresses.insert(addresses.end(), question->addresses.begin(), question->addresses.end());
    const NativeLine line{"/src/a.c", 57, false};
    said_.push_back(LineAnswerBytes({question->number, "", std::vector<NativeLine>(question->addresses.size(), line)}));
    return true;
  }
  std::optional<std::string> Receive() override {
    if (said_.empty()) return std::nullopt;
    std::string first = std::move(said_.front());
    said_.pop_front();
    return first;
  }
  void WaitMs(int) override {}
  bool ended() const override { return false; }
  void End() override {}

  std::vector<ino_t> inodes;
  std::vector<uint64_t> addresses;

 private:
  std::deque<std::string> said_;
};

class NativeLinesTest : public testing::Test {
 protected:
  NativeLinesTest()
      : process_(ProcessKey{static_cast<uint32_t>(getpid()), 1},
                 TargetFiles("/proc", static_cast<uint32_t>(getpid()))) {}

  // The address of the fixture's own function, as mapped at kBase; and as linked.
  static std::pair<uint64_t, uint64_t> Entry() {
    const std::string bytes = *ReadWholeFile(ElfFixture("liblines.so"), 64 << 20);
    const auto image = ElfImage::Parse(AsBytes(bytes));
    const VirtualAddress address = FindSymbol(*image, "exported_entry")->address;
    return {kBase + image->ToOffset(address)->value, address.value};
  }
  std::optional<SourcePlace> PlaceAt(uint64_t address) {
    return lines_.PlaceOf({process_, process_.mappings.Find(address), address, address, {5}});
  }

  ImageFiles images_;
  FrameTable frames_;
  Notices notices_;
  Process process_;
  ElfSymbolsSource elf_{images_, frames_, notices_, NameStyle::kShort, {"/nowhere", nullptr, true}};
  std::shared_ptr<Line57> helper_ = std::make_shared<Line57>();
  NativeLines lines_{elf_, helper_, notices_};
};

TEST_F(NativeLinesTest, ASampleWaitsForTheLinesOfItsCode) {
  process_.mappings.Insert(MappingOfFile(ElfFixture("libaway.so"), kBase));
  const auto [address, linked] = Entry();
  const uint64_t addresses[] = {address, 0x1234};
  EXPECT_EQ(lines_.CompleteUntil(process_.key), MonotonicTime::Max());
  lines_.Observe(process_, {addresses, {}, {5}});
  EXPECT_LT(lines_.CompleteUntil(process_.key), MonotonicTime{5});
  EXPECT_TRUE(lines_.WantsShortIterations({6}));
  lines_.Poll(process_, {6});
  lines_.Poll(process_, {7});
  EXPECT_EQ(lines_.CompleteUntil(process_.key), MonotonicTime::Max());
  EXPECT_EQ(PlaceAt(address), (SourcePlace{"/src/a.c", 57, 0, LineKind::kOptimised}));
  EXPECT_EQ(helper_->addresses, std::vector<uint64_t>{linked});
  struct stat debug {};
  ASSERT_EQ(stat(ElfFixture("libaway.so.dbg").c_str(), &debug), 0);
  EXPECT_EQ(helper_->inodes, std::vector<ino_t>{debug.st_ino}) << "the debug file went along";
}

TEST_F(NativeLinesTest, AnotherFileUnderTheSamePathIsNotRead) {
  char folder[] = "/tmp/clrsampler_lines_XXXXXX";
  const std::string path = std::string(mkdtemp(folder)) + "/liblines.so";
  std::filesystem::copy_file(ElfFixture("liblines.so"), path);
  process_.mappings.Insert(MappingOfFile(path, kBase));
  const uint64_t address = Entry().first;
  ASSERT_TRUE(elf_.LinePlaceOf(process_, *process_.mappings.Find(address), address).has_value());
  std::filesystem::copy_file(ElfFixture("liblines.so"), path + ".new");
  std::filesystem::rename(path + ".new", path);
  const uint64_t addresses[] = {address};
  lines_.Observe(process_, {addresses, {}, {5}});
  lines_.Poll(process_, {6});
  EXPECT_TRUE(helper_->addresses.empty());
  EXPECT_FALSE(PlaceAt(address).has_value());
  std::filesystem::remove_all(folder);
}

TEST_F(NativeLinesTest, NativeCodeAlone) {
  EXPECT_TRUE(lines_.HasLinesOf(FrameKind::kNative));
  EXPECT_TRUE(lines_.HasLinesOf(FrameKind::kAot));
  EXPECT_FALSE(lines_.HasLinesOf(FrameKind::kJit));
  EXPECT_FALSE(lines_.HasLinesOf(FrameKind::kKernel));
}

}  // namespace
}  // namespace clrsampler
