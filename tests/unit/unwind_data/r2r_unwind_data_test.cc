#include "unwind_data/r2r_unwind_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_format.h"
#include "formats/unwind/x64_code.h"
#include "test_paths.h"
#include "unit/formats/pe/fixture.h"
#include "unit/formats/pe/loaded_fixture.h"
#include "unit/process/mapping_of_file.h"
#include "unwind/managed_step.h"

namespace clrsampler {
namespace {

constexpr uint64_t kBase = 0x7f0000010000;

std::unique_ptr<R2rImage> Open(const std::string& bytes) {
  return *R2rImage::Open(*PeImage::Parse(AsBytes(bytes)), "fixture");
}

// The codes of a prologue, but not where the frame pointer was set, which few functions say.
std::vector<UnwindCode> Decoded(const ManagedFunction& function) {
  std::vector<UnwindCode> codes;
  for (const UnwindCode& code : DecodePrologue(function.code).codes) {
    if (code.op != UnwindOp::kSetFrame || function.unwind.frame_register != 0) codes.insert(codes.begin(), code);
  }
  return codes;
}

class R2rUnwindDataTest : public testing::Test {
 protected:
  CodeAt At(const Mapping& mapping, uint64_t offset) {
    const uint64_t address = mapping.start + offset;
    return data_.At({process_, &mapping, address + 1, address, MonotonicTime{5}});
  }

  ImageFiles images_;
  FrameTable frames_;
  R2rMethods methods_{&images_, &frames_, NameStyle::kRaw};
  R2rUnwindData data_{&methods_};
  Process process_{ProcessKey{1, 1}, TargetFiles("/proc", static_cast<uint32_t>(getpid()))};
};

TEST_F(R2rUnwindDataTest, EachFunctionOfAnImageAgreesWithItsPrologue) {
  for (const char* name : {"8.0.30-x64/shapes.dll", "9.0.19-x64/shapes.dll", "10.0.14-x64/shapes.dll",
                           "10.0.14-x64-composite/both.r2r.dll"}) {
    const std::string bytes = ReadFixture(name);
    const auto image = Open(bytes);
    const Mapping mapping = MappingOfFile(absl::StrCat(TestData("r2r/"), name), kBase);
    uint32_t funclets = 0;
    for (uint32_t i = 0; i < image->function_count(); ++i) {
      const R2rFunction function = *image->Function(i);
      const uint64_t offset = *image->pe().OffsetOfRva(function.begin);
      const CodeAt found = At(mapping, offset);
      ASSERT_EQ(found.kind, CodeKind::kManaged) << name << " " << i;
      EXPECT_EQ(found.managed->begin, mapping.start + offset);
      EXPECT_EQ(found.managed->end - found.managed->begin, function.end - function.begin);
      EXPECT_EQ(found.managed->method_begin,
                found.managed->begin - function.begin + image->Function(function.method)->begin);
      EXPECT_EQ(found.managed->code.size(), function.end - function.begin);
      EXPECT_THAT(Decoded(*found.managed), testing::ElementsAreArray(found.managed->unwind.codes)) << name << " " << i;
      EXPECT_EQ(found.managed->funclet, function.part == R2rPart::kFunclet);
      funclets += found.managed->funclet ? 1 : 0;
      // Also from its last byte, and without being read again.
      EXPECT_EQ(At(mapping, offset + function.end - function.begin - 1).managed, found.managed);
    }
    EXPECT_GT(funclets, 0u) << name;
  }
}

// The function's beginning is another witness, which the code at the leaf does not need.
TEST_F(R2rUnwindDataTest, OnArm64EachLeafIsToldFromItsFunctionsBeginningToo) {
  for (const char* name : {"8.0.30-arm64/shapes.dll", "9.0.19-arm64/shapes.dll", "10.0.14-arm64/shapes.dll"}) {
    const std::string bytes = ReadFixture(name);
    const auto image = Open(bytes);
    const Mapping mapping = MappingOfFile(absl::StrCat(TestData("r2r/"), name), kBase);
    int prologues = 0, returns = 0;
    for (uint32_t i = 0; i < image->function_count(); ++i) {
      const R2rFunction function = *image->Function(i);
      const uint64_t offset = *image->pe().OffsetOfRva(function.begin);
      const auto instruction = [&](uint64_t at) { return *LoadAt<uint32_t>(AsBytes(bytes), offset + at); };
      const uint64_t size = function.end - function.begin;
      // mov x29, sp or add x29, sp, #N, unless it is a funclet.
      uint64_t frame_set = 0;
      while (frame_set < size && (instruction(frame_set) & 0xff8003ff) != 0x910003fd) frame_set += 4;
      const bool has_prologue = frame_set < std::min<uint64_t>(size, 64);
      uint64_t moved = 0;
      bool restored = false;
      for (uint64_t at = 0; at < size; at += 4) {
        const CodeAt found = At(mapping, offset + at);
        const uint32_t next = instruction(at);
        ASSERT_EQ(found.kind, CodeKind::kManaged);
        ASSERT_EQ(found.managed, nullptr);
        if (next < 0x10000 || (next & 0xffe0001f) == 0xd4200000) break;  // constants may follow
        const bool in_prologue = has_prologue && at <= frame_set;
        ASSERT_EQ(found.has_row, in_prologue || restored) << name << " " << i << " at " << at;
        ASSERT_FALSE(found.between_rows) << name << " " << i << " at " << at;
        EXPECT_EQ(found.row.cfa_offset, in_prologue ? static_cast<int64_t>(moved) : found.row.cfa_offset) << name << i;
        if ((next & 0xffc003e0) == 0xa98003e0) moved += (128 - (next >> 15 & 127)) * 8;  // stp ..., [sp, #-N]!
        if ((next & 0xff8003ff) == 0xd10003ff) moved += next >> 10 & 0xfff;              // sub sp, sp, #N
        if ((next & 0xfe407fff) == 0xa8407bfd) restored = true;                          // ldp x29, x30, ...
        prologues += in_prologue ? 1 : 0;
        if ((next & 0xfe000000) == 0xd6000000 || (next & 0xfc000000) == 0x14000000) {
          returns += next == 0xd65f03c0 ? 1 : 0;
          restored = false;
        }
      }
    }
    EXPECT_GT(prologues, 100) << name;
    EXPECT_GT(returns, 50) << name;
  }
}

TEST_F(R2rUnwindDataTest, SplitMethodsHaveUnwindDataOfBothPartsAndNoEpilogues) {
  const char* name = "10.0.14-x64-hot-cold/shapes.dll";
  const std::string bytes = ReadFixture(name);
  const auto image = Open(bytes);
  ASSERT_TRUE(image->has_cold_parts());
  const Mapping mapping = MappingOfFile(absl::StrCat(TestData("r2r/"), name), kBase);
  uint32_t cold = 0, with_frame = 0;
  for (uint32_t i = 0; i < image->function_count(); ++i) {
    const R2rFunction function = *image->Function(i);
    const CodeAt found = At(mapping, *image->pe().OffsetOfRva(function.begin));
    ASSERT_EQ(found.kind, CodeKind::kManaged) << i;
    EXPECT_TRUE(found.managed->code.empty());
    if (function.part != R2rPart::kCold) continue;
    ++cold;
    if (!found.managed->unwind.chained) continue;
    // The work of the hot part, as done before.
    const CodeAt hot = At(mapping, *image->pe().OffsetOfRva(image->Function(function.method)->begin));
    ASSERT_EQ(found.managed->unwind.codes.size(), hot.managed->unwind.codes.size());
    with_frame += found.managed->unwind.codes.empty() ? 0 : 1;
    EXPECT_EQ(found.managed->method_begin, hot.managed->begin);
    EXPECT_FALSE(found.managed->osr);
  }
  EXPECT_GT(cold, 0u);
  std::printf("%u cold parts, %u with a frame\n", cold, with_frame);
}

TEST_F(R2rUnwindDataTest, OtherCodeOfAnImageIsAStub) {
  const std::string bytes = ReadFixture("10.0.14-x64/shapes.dll");
  const auto image = Open(bytes);
  const Mapping mapping = MappingOfFile(TestData("r2r/10.0.14-x64/shapes.dll"), kBase);
  const R2rFunction last = *image->Function(image->function_count() - 1);
  EXPECT_EQ(At(mapping, *image->pe().OffsetOfRva(last.end - 1) + 1).kind, CodeKind::kStub);
  EXPECT_EQ(At(mapping, 0).kind, CodeKind::kUnknown);  // headers are no code
}

TEST_F(R2rUnwindDataTest, OtherFilesHaveNone) {
  const Mapping il = MappingOfFile(TestData("r2r/10.0.14-x64-composite/library.dll"), kBase);
  const Mapping own = MappingOfFile("/proc/self/exe", kBase);
  for (uint64_t offset = 0; offset < 0x2000; offset += 16) {
    EXPECT_EQ(At(il, offset).kind, CodeKind::kUnknown);
    EXPECT_EQ(At(own, offset).kind, CodeKind::kUnknown);
  }
}

// The image of a compressed single-file program is in the process's memory only.
class R2rUnwindDataInMemoryTest : public testing::Test {
 protected:
  static constexpr uint64_t kBase = 0x55e2c7850000;
  static constexpr uint32_t kTgid = 4711;

  void SetUp() override {
    char path[] = "/tmp/r2r_unwind_test.XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    proc_ = path;
    file_ = ReadFixture("8.0.30-x64/shapes.dll");
    image_ = LaidOut(file_);
    const auto pe = PeImage::Parse(AsBytes(image_), PeLayout::kLoaded);
    for (const PeSection& section : pe->sections()) {
      if (section.executable) code_ = section;
    }
    mapping_.start = kBase + code_.rva / 4096 * 4096;
    mapping_.end = kBase + (code_.rva + code_.file_bytes + 4095) / 4096 * 4096;
    mapping_.kind = MappingKind::kJitMemory;
    mapping_.path = "//anon";
    process_.mappings.Insert(mapping_);
    std::filesystem::create_directories(absl::StrCat(proc_, "/", kTgid));
    std::ofstream(absl::StrCat(proc_, "/", kTgid, "/maps"))
        << absl::StrFormat("%x-%x r--p 00000000 00:00 0 \n%x-%x rw-p 00000000 00:00 0 \n%x-%x r-xp 00000000 00:00 0 \n",
                           kBase, kBase + 0x1000, kBase + 0x1000, mapping_.start, mapping_.start, mapping_.end);
    process_.files = TargetFiles(proc_, kTgid);
    options_.read_memory = [this](uint32_t, uint64_t address, std::span<std::byte> into) {
      return Read(address, into);
    };
    methods_ = std::make_unique<R2rMethods>(&images_, &frames_, NameStyle::kRaw, options_);
    data_ = std::make_unique<R2rUnwindData>(methods_.get(), options_.read_memory);
  }
  void TearDown() override { std::filesystem::remove_all(proc_); }
  bool Read(uint64_t address, std::span<std::byte> into) {
    const auto bytes = SliceAt(AsBytes(image_), address - kBase, into.size());
    if (address < kBase || gone_ || !bytes) return false;
    std::memcpy(into.data(), bytes->data(), into.size());
    return true;
  }
  CodeAt At(uint64_t rva) {
    const uint64_t address = kBase + rva;
    return data_->At({process_, &mapping_, address + 1, address, MonotonicTime{5}});
  }

  std::string proc_, file_, image_;
  bool gone_ = false;
  PeSection code_;
  Mapping mapping_;
  R2rMemoryOptions options_;
  ImageFiles images_;
  FrameTable frames_;
  std::unique_ptr<R2rMethods> methods_;
  std::unique_ptr<R2rUnwindData> data_;
  Process process_{ProcessKey{kTgid, 1}, TargetFiles("/proc", static_cast<uint32_t>(getpid()))};
};

TEST_F(R2rUnwindDataInMemoryTest, IsReadOutOfTheProcess) {
  const auto image = Open(file_);
  uint32_t funclets = 0;
  for (uint32_t i = 0; i < image->function_count(); ++i) {
    const R2rFunction function = *image->Function(i);
    const CodeAt found = At(function.begin);
    ASSERT_EQ(found.kind, CodeKind::kManaged) << i;
    EXPECT_EQ(found.managed->begin, kBase + function.begin);
    EXPECT_EQ(found.managed->code.size(), function.end - function.begin);
    EXPECT_THAT(Decoded(*found.managed), testing::ElementsAreArray(found.managed->unwind.codes)) << i;
    funclets += found.managed->funclet ? 1 : 0;
  }
  EXPECT_GT(funclets, 0u);
  EXPECT_EQ(data_->counters().functions, image->function_count());
}

TEST_F(R2rUnwindDataInMemoryTest, WhatASampleMetIsKnownWhenTheProcessIsGone) {
  const auto image = Open(file_);
  const R2rFunction one = *image->Function(0), other = *image->Function(1);
  const uint64_t addresses[] = {kBase + one.begin};
  data_->Observe(process_, {addresses, {}, MonotonicTime{5}});
  gone_ = true;
  process_.exited = {9};
  EXPECT_EQ(At(one.begin).kind, CodeKind::kManaged);
  EXPECT_EQ(At(other.begin).kind, CodeKind::kUnknown);
  EXPECT_EQ(data_->counters().unreadable, 1u);
}

}  // namespace
}  // namespace clrsampler
