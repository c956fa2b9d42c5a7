#include "unwind_data/process_code.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "clr/r2r_methods.h"
#include "formats/byte_reader.h"
#include "unit/formats/elf/frame_builder.h"
#include "unit/process/hanging_tape.h"
#include "unit/process/mapping_of_file.h"

namespace clrsampler {
namespace {

// An ELF image of one function, which our own process maps.
class ProcessCodeTest : public testing::Test {
 protected:
  static constexpr uint64_t kBase = 0x7f0000000000, kFunctionBytes = 0x10;

  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "process_code_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    FrameBuilder builder;
    builder.AddFunction(builder.AddCommon(), FrameBuilder::kCode, kFunctionBytes, cfa::DefCfaOffset(24));
    const std::string image = builder.Build(/*with_header=*/true);
    std::ofstream(folder_ / "image.so", std::ios::binary) << image;
    function_ = kBase + ElfImage::Parse(AsBytes(image))->ToOffset({FrameBuilder::kCode})->value;
    process_.mappings.Insert(Image());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Mapping Image() const { return MappingOfFile((folder_ / "image.so").string(), kBase); }
  const CodeAt& At(uint64_t address, uint64_t time_ns = 1) { return code_.For(process_, {time_ns}).At(address); }

  std::filesystem::path folder_;
  uint64_t function_ = 0;
  HangingTape tape_;
  Process process_{ProcessKey{1, 1}, TargetFiles("/proc", static_cast<uint32_t>(getpid()), &tape_)};
  FakeClock clock_;
  ImageFiles images_{nullptr, &clock_};
  FrameTable frames_;
  R2rMethods methods_{&images_, &frames_, NameStyle::kRaw};
  R2rUnwindData r2r_{&methods_};
  ElfUnwindData elf_{images_};
  JitUnwindData jit_{[](ProcessKey) { return nullptr; }, clock_};
  ProcessCode code_{jit_, r2r_, elf_, nullptr, nullptr};
};

TEST_F(ProcessCodeTest, AnotherPartOfTheFileIsOtherCode) {
  tape_.hangs = false;
  EXPECT_TRUE(At(function_).has_row);
  Mapping moved = Image();
  moved.file_offset += kFunctionBytes;
  process_.mappings.Insert(moved);
  EXPECT_FALSE(At(function_).has_row) << "what lies behind the function";
  EXPECT_TRUE(At(function_ - kFunctionBytes).has_row);
}

TEST_F(ProcessCodeTest, AFileWithTheSameInodeOnAnotherDeviceIsOtherCode) {
  tape_.hangs = false;
  EXPECT_TRUE(At(function_).has_row);
  Mapping other = Image();
  other.path = (folder_ / "gone.so").string();
  ++other.device_minor;
  process_.mappings.Insert(other);
  EXPECT_FALSE(At(function_).has_row);
}

TEST_F(ProcessCodeTest, TheSameMappingIsAskedAboutOnce) {
  tape_.hangs = false;
  EXPECT_TRUE(At(function_).has_row);
  EXPECT_TRUE(code_.answers_last());
  process_.mappings.Insert(MappingOfFile((folder_ / "image.so").string(), 2 * kBase));  // another one
  const CodeAt* known = &At(function_);
  EXPECT_EQ(&At(function_), known) << "it is remembered";
}

TEST_F(ProcessCodeTest, AnImageThatCouldNotBeReadForATimeIsReadLater) {
  EXPECT_FALSE(At(function_, kSecondNs).has_row);
  EXPECT_EQ(At(function_, kSecondNs).kind, CodeKind::kNative);
  EXPECT_FALSE(code_.answers_last());
  for (uint64_t frame = 0; frame < 10; ++frame) At(function_ + frame, kSecondNs);
  EXPECT_EQ(tape_.opens, 1) << "not for each frame";
  tape_.hangs = false;
  clock_.Advance(ImageFiles::kAskAgainNs);
  EXPECT_TRUE(At(function_, kSecondNs + ImageFiles::kAskAgainNs).has_row);
  EXPECT_TRUE(code_.answers_last());
}

}  // namespace
}  // namespace clrsampler
