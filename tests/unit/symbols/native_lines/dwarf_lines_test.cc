// Files of the compiler at hand, read by libdw. In a process of its own where they are damaged.
#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <string>

#include "absl/strings/match.h"
#include "formats/byte_reader.h"
#include "formats/elf/elf_image.h"
#include "os/file_io.h"
#include "symbols/native_lines/line_process.h"
#include "symbols/native_lines/line_table.h"
#include "test_paths.h"
#include "unit/formats/elf/find_symbol.h"

namespace clrsampler {
namespace {

// The fixtures are made by the compiler of this test; gcc lists its options in debug information.
#ifdef __clang__
constexpr bool kCompilerListsOptions = false;
#else
constexpr bool kCompilerListsOptions = true;
#endif

std::string Bytes(const std::string& fixture) { return *ReadWholeFile(ElfFixture(fixture), 64 << 20); }

std::string TextOfLine(const NativeLine& line) {
  std::ifstream source(line.file);
  std::string text;
  for (uint32_t i = 0; i < line.line; ++i) std::getline(source, text);
  return text;
}

class DwarfLinesTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!open_.ok()) GTEST_SKIP() << open_.status().message();
  }
  static UniqueFd File(const std::string& fixture) {
    return UniqueFd(open(ElfFixture(fixture).c_str(), O_RDONLY | O_CLOEXEC));
  }

  const std::string bytes_ = Bytes("liblines.so");
  const absl::StatusOr<ElfImage> image_ = ElfImage::Parse(AsBytes(bytes_));
  const absl::StatusOr<OpenLineTable> open_ = LoadDwarfLines();
};

TEST_F(DwarfLinesTest, TheLineIsThatOfTheCompiler) {
  for (const char* file : {"liblines.so", "libaway.so.dbg"}) {
    const auto table = (*open_)(File(file));
    ASSERT_TRUE(table.ok()) << table.status();
    const uint64_t start = FindSymbol(*image_, "_ZNK4shop5Order5TotalEi")->address.value;
    const NativeLine line = (*table)->At(start);
    EXPECT_TRUE(absl::EndsWith(line.file, "/fixture_code.cc")) << line.file;
    EXPECT_EQ(TextOfLine(line), "int Order::Total(int count) const { return count * 3 + rand(); }");
    EXPECT_EQ(line.exact, kCompilerListsOptions) << "it was compiled with -O0";
  }
}

// The units of the packed one are not read.
TEST_F(DwarfLinesTest, PackedLinesAreTheSame) {
  const auto table = (*open_)(File("libaway.so.dbg")), packed = (*open_)(File("libpacked.so.dbg"));
  ASSERT_TRUE(table.ok() && packed.ok()) << table.status() << packed.status();
  const ElfSection* const code = image_->FindSection(".text");
  size_t with_line = 0;
  for (uint64_t at = code->address.value; at < code->address.value + code->size; ++at) {
    const NativeLine told = (*packed)->At(at), line = (*table)->At(at);
    ASSERT_EQ(told.file, line.file) << at;
    ASSERT_EQ(told.line, line.line) << at;
    EXPECT_FALSE(told.exact);
    with_line += told.line != 0 ? 1 : 0;
  }
  EXPECT_GT(with_line, 100u);
  EXPECT_EQ((*packed)->At(0), NativeLine());
  EXPECT_EQ((*packed)->At(UINT64_MAX), NativeLine());
}

TEST_F(DwarfLinesTest, WhatNoUnitCoversHasNoLine) {
  const auto table = (*open_)(File("liblines.so"));
  ASSERT_TRUE(table.ok());
  EXPECT_EQ((*table)->At(0), NativeLine());
  EXPECT_EQ((*table)->At(UINT64_MAX), NativeLine());
  EXPECT_EQ((*table)->At(image_->FindSection(".plt")->address.value), NativeLine());
}

TEST_F(DwarfLinesTest, AFileWithoutLinesSaysSo) {
  EXPECT_FALSE((*open_)(File("libwhole.so")).ok());
  EXPECT_FALSE((*open_)(UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC))).ok());
}

// Whatever libdw makes of it, the next file has its lines.
TEST_F(DwarfLinesTest, DamagedFilesCostNoOther) {
  const auto helper = StartLineHelper({.question_seconds = 5, .readers = 100});
  const UniqueFd whole = File("liblines.so");
  const uint64_t start = FindSymbol(*image_, "exported_entry")->address.value;
  std::mt19937 random(1);
  uint64_t number = 0;
  const auto ask = [&](uint64_t file, int fd) {
    EXPECT_TRUE(helper->Send(LineQuestionBytes({++number, file, {start}}), fd));
    for (;;) {
      if (const auto datagram = helper->Receive()) return *datagram;
      if (helper->ended()) return std::string();
      helper->WaitMs(1000);
    }
  };
  for (uint64_t round = 0; round < 200; ++round) {
    std::string damaged = bytes_;
    for (const char* name : {".debug_line", ".debug_info", ".debug_abbrev", ".debug_line_str"}) {
      const ElfSection* const section = image_->FindSection(name);
      if (section == nullptr) continue;
      const auto content = image_->SectionBytes(*section);
      const auto begin = static_cast<size_t>(content->data() - AsBytes(bytes_).data());
      for (int i = 0; i < 4; ++i) damaged[begin + random() % content->size()] = static_cast<char>(random());
    }
    const UniqueFd file(memfd_create("damaged", MFD_CLOEXEC));
    ASSERT_TRUE(WriteAll(file.get(), damaged).ok());
    ASSERT_NE(ask(1000 + round, file.get()), "");
    const std::optional<LineAnswer> answer = ParseLineAnswer(ask(1, whole.get()), 1);
    ASSERT_TRUE(answer.has_value()) << round;
    EXPECT_TRUE(absl::EndsWith(answer->lines.at(0).file, "/fixture_code.cc"));
  }
}

}  // namespace
}  // namespace clrsampler
