#include "clr/r2r_memory_images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "clr/r2r_methods.h"
#include "unit/formats/pe/fixture.h"
#include "unit/formats/pe/loaded_fixture.h"

namespace clrsampler {
namespace {

// A process with made-up mappings: /proc is a folder, memory a map of texts.
class R2rMemoryImagesTest : public testing::Test {
 protected:
  static constexpr uint64_t kBase = 0x55e2c7850000;
  static constexpr uint32_t kTgid = 4711;
  static constexpr MonotonicTime kNow{5};

  void SetUp() override {
    char path[] = "/tmp/r2r_memory_test.XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    proc_ = path;
    image_ = LaidOut(ReadFixture("10.0.14-x64/shapes.dll"));
    pe_ = *PeImage::Parse(AsBytes(image_), PeLayout::kLoaded);
    for (const PeSection& section : pe_->sections()) {
      if (section.executable) code_ = section;
    }
    memory_[kBase] = image_;
    WriteMaps(TypicalMaps());
  }
  void TearDown() override { std::filesystem::remove_all(proc_); }

  // As measured: header, a gap that the runtime leaves writable, code, the rest.
  std::string TypicalMaps() const {
    const uint64_t code = kBase + code_.rva / 4096 * 4096;
    return absl::StrFormat(
        "%x-%x rw-s 00191000 00:01 121810 /memfd:doublemapper (deleted)\n"
        "%x-%x r--p 00000000 00:00 0 \n%x-%x rw-p 00000000 00:00 0 \n%x-%x r-xp 00000000 00:00 0 \n",
        kBase - 0x50000, kBase, kBase, kBase + 0x1000, kBase + 0x1000, code, code, CodeEnd());
  }
  uint64_t CodeEnd() const { return kBase + (code_.rva + code_.file_bytes + 4095) / 4096 * 4096; }
  void WriteMaps(const std::string& text, uint32_t tgid = kTgid) {
    std::filesystem::create_directories(absl::StrCat(proc_, "/", tgid));
    std::ofstream(absl::StrCat(proc_, "/", tgid, "/maps")) << text;
  }
  Mapping Code() const {
    Mapping mapping;
    mapping.start = kBase + code_.rva / 4096 * 4096;
    mapping.end = CodeEnd();
    mapping.kind = MappingKind::kJitMemory;
    mapping.path = "//anon";
    return mapping;
  }
  bool Read(uint64_t address, std::span<std::byte> into) {
    ++reads_;
    for (const auto& [start, content] : memory_) {
      if (address < start) continue;
      const auto bytes = SliceAt(AsBytes(content), address - start, into.size());
      if (!bytes) continue;
      std::memcpy(into.data(), bytes->data(), into.size());
      return true;
    }
    return false;
  }
  R2rMemoryOptions Options() {
    R2rMemoryOptions options;
    options.read_memory = [this](uint32_t, uint64_t address, std::span<std::byte> into) { return Read(address, into); };
    return options;
  }
  Process MakeProcess(uint32_t tgid = kTgid) const { return Process(ProcessKey{tgid, 1}, TargetFiles(proc_, tgid)); }

  std::string proc_;
  std::string image_;
  std::optional<PeImage> pe_;
  PeSection code_;
  std::map<uint64_t, std::string> memory_;
  int reads_ = 0;
};

TEST_F(R2rMemoryImagesTest, EveryMethodOfAnImageInMemoryIsNamed) {
  ImageFiles images;
  FrameTable frames;
  R2rMethods methods(&images, &frames, NameStyle::kFull, Options());
  const Process process = MakeProcess();
  const Mapping mapping = Code();
  const auto file = OpenR2r(image_);
  FixtureOpener opener("");
  size_t named = 0;
  for (const auto& [rva, row] : ReadFixtureMap("10.0.14-x64/shapes.ni.r2rmap").names) {
    const auto resolution = methods.Resolve({process, &mapping, kBase + rva, kBase + rva, MonotonicTime{5}});
    ASSERT_TRUE(resolution.has_value()) << row;
    const Frame& frame = frames.at(resolution->frame);
    EXPECT_EQ(frame.source, NameSource::kR2rImage);
    EXPECT_EQ(frame.kind, FrameKind::kR2r);
    EXPECT_EQ(frame.module, "shapes");
    ++named;
  }
  EXPECT_EQ(named, methods.counters().methods_named);
  EXPECT_GT(named, 60u);
  EXPECT_EQ(methods.memory_counters().images_copied, 1u);
  EXPECT_EQ(methods.memory_counters().maps_read, 1u);
}

TEST_F(R2rMemoryImagesTest, TwoProcessesShareWhatIsEqualAndOnlyThat) {
  R2rMemoryImages images(Options());
  WriteMaps(TypicalMaps(), 4712);
  WriteMaps(TypicalMaps(), 4713);
  const Mapping mapping = Code();
  const Process one = MakeProcess(), two = MakeProcess(4712), liar = MakeProcess(4713);
  const uint64_t address = mapping.start + 100;
  const auto first = images.Find(one, mapping, address, kNow), second = images.Find(two, mapping, address, kNow);
  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_EQ(first->base, kBase);
  EXPECT_EQ(first->image, second->image);
  EXPECT_EQ(images.counters().images_shared, 1u);
  // The same header, another name in its metadata.
  const size_t name = memory_[kBase].find("shapes.dll");
  ASSERT_NE(name, std::string::npos);
  memory_[kBase][name] = 'S';
  const auto third = images.Find(liar, mapping, address, kNow);
  ASSERT_TRUE(third.has_value());
  EXPECT_NE(third->image, first->image);
}

TEST_F(R2rMemoryImagesTest, MemoryWithoutAnImageIsLookedAtOnce) {
  R2rMemoryImages images(Options());
  memory_[kBase] = std::string(image_.size(), 'x');
  const Process process = MakeProcess();
  const Mapping mapping = Code();
  EXPECT_FALSE(images.Find(process, mapping, mapping.start, kNow).has_value());
  const int reads = reads_;
  EXPECT_GT(reads, 0);
  EXPECT_FALSE(images.Find(process, mapping, mapping.start + 5, kNow).has_value());
  EXPECT_EQ(reads_, reads);
  EXPECT_EQ(images.counters().maps_read, 1u);
}

// With 60,000 mappings, of which new ones run all the time.
TEST_F(R2rMemoryImagesTest, AProcessThatKeepsMappingIsNotReadForEachFrame) {
  std::string maps = TypicalMaps();
  constexpr size_t kMappings = 60'000;
  Process process = MakeProcess();
  std::vector<Mapping> mappings;
  for (size_t i = 0; i < kMappings; ++i) {
    Mapping mapping = Code();
    mapping.start = 0x7f0000000000 + i * 0x2000;
    mapping.end = mapping.start + 0x1000;
    absl::StrAppendFormat(&maps, "%x-%x r-xp 00000000 00:00 0 \n", mapping.start, mapping.end);
    mappings.push_back(mapping);
  }
  WriteMaps(maps);
  R2rMemoryImages images(Options());
  MonotonicTime now = kNow;
  // The frames of one sample.
  for (size_t i = 0; i < 100; ++i) images.Find(process, mappings[i], mappings[i].start, now);
  EXPECT_EQ(images.counters().maps_read, 1u);
  // The samples of a minute.
  for (size_t i = 100; i < 6'100; ++i) {
    now.ns += 10'000'000;
    process.mappings.Insert(mappings[i]);
    images.Find(process, mappings[i], mappings[i].start, now);
  }
  EXPECT_LE(images.counters().maps_read, 2 + 60 * R2rMemoryImages::kMapsLinesPerSecond / kMappings + 1);
  EXPECT_EQ(images.counters().maps_read + images.counters().maps_postponed, 6'001u);
  // An image that was postponed is found later.
  now.ns += 60'000'000'000;
  process.mappings.Insert(Code());
  EXPECT_TRUE(images.Find(process, Code(), Code().start + 100, now).has_value());
}

TEST_F(R2rMemoryImagesTest, AnAnswerDoesNotOutliveALookThatWasPostponed) {
  std::string maps = TypicalMaps();
  Mapping other = Code();
  other.start = 0x7f0000000000;
  other.end = other.start + 0x1000;
  for (int64_t i = 0; i < R2rMemoryImages::kMostMapsLines; ++i) {
    const uint64_t start = other.start + static_cast<uint64_t>(i) * 0x2000;
    absl::StrAppendFormat(&maps, "%x-%x r-xp 00000000 00:00 0 \n", start, start + 0x1000);
  }
  WriteMaps(maps);
  ImageFiles images;
  FrameTable frames;
  R2rMethods methods(&images, &frames, NameStyle::kFull, Options());
  Process process = MakeProcess();
  EXPECT_FALSE(methods.Resolve({process, &other, other.start, other.start, kNow}).has_value());
  process.mappings.Insert(Code());
  const Mapping mapping = Code();
  const uint64_t address = kBase + ReadFixtureMap("10.0.14-x64/shapes.ni.r2rmap").names.begin()->first;
  const auto early = methods.Resolve({process, &mapping, address, address, kNow});
  ASSERT_TRUE(early.has_value());
  EXPECT_FALSE(frames.at(early->frame).named());
  EXPECT_EQ(early->from, kNow);
  EXPECT_EQ(early->until, kNow);
  EXPECT_EQ(methods.memory_counters().ByName().at("images_postponed"), 1u);
  const auto later = methods.Resolve({process, &mapping, address, address, {60 * kSecondNs}});
  ASSERT_TRUE(later.has_value());
  EXPECT_TRUE(frames.at(later->frame).named());
  EXPECT_EQ(later->until, MonotonicTime::Max());
}

TEST_F(R2rMemoryImagesTest, AHeaderThatDoesNotReachTheAddressIsNotItsImage) {
  R2rMemoryImages images(Options());
  const uint32_t header = *LoadAt<uint32_t>(AsBytes(image_), 0x3C);
  const uint32_t small = 0x8000;  // SizeOfImage
  std::memcpy(memory_[kBase].data() + header + 24 + 56, &small, sizeof small);
  const Mapping mapping = Code();
  EXPECT_FALSE(images.Find(MakeProcess(), mapping, mapping.start + 100, kNow).has_value());
}

TEST_F(R2rMemoryImagesTest, OnlyAnonymousMemoryThatTouchesTheCodeIsSearched) {
  const uint64_t code = kBase + code_.rva / 4096 * 4096;
  const Mapping mapping = Code();
  for (const std::string& maps :
       {absl::StrFormat("%x-%x r--p 00000000 00:00 0 \n%x-%x r-xp 00000000 00:00 0 \n", kBase, kBase + 0x1000, code,
                        CodeEnd()),  // a hole between them
        absl::StrFormat("%x-%x r--p 00000000 00:00 77 /a.so\n%x-%x r-xp 00000000 00:00 0 \n", kBase, code, code,
                        CodeEnd()),
        std::string("no line of maps\n"), std::string()}) {
    R2rMemoryImages images(Options());
    WriteMaps(maps);
    EXPECT_FALSE(images.Find(MakeProcess(), mapping, mapping.start + 100, kNow).has_value()) << maps;
  }
  Mapping heap = mapping;
  heap.path = "/memfd:doublemapper (deleted)";
  heap.inode = 121810;
  R2rMemoryImages images(Options());
  EXPECT_FALSE(images.Find(MakeProcess(), heap, heap.start, kNow).has_value());
  EXPECT_EQ(images.counters().maps_read, 0u);
}

TEST_F(R2rMemoryImagesTest, AnImageThatGaveWayToAnotherIsNoticedWhenTheMappingsChange) {
  R2rMemoryImages images(Options());
  Process process = MakeProcess();
  const Mapping mapping = Code();
  process.mappings.Insert(mapping);
  const auto before = images.Find(process, mapping, mapping.start + 100, kNow);
  ASSERT_TRUE(before.has_value());
  const uint32_t header = *LoadAt<uint32_t>(AsBytes(image_), 0x3C);
  memory_[kBase][header + 8] ^= 1;  // TimeDateStamp: another build
  process.mappings.Insert(mapping);
  const auto after = images.Find(process, mapping, mapping.start + 100, kNow);
  ASSERT_TRUE(after.has_value());
  EXPECT_NE(after->image, before->image);
  memory_.clear();  // and then nothing is there
  process.mappings.Insert(mapping);
  EXPECT_FALSE(images.Find(process, mapping, mapping.start + 100, kNow).has_value());
}

TEST_F(R2rMemoryImagesTest, AnImageThatClaimsGigabytesIsNotTaken) {
  const uint32_t header = *LoadAt<uint32_t>(AsBytes(image_), 0x3C);
  const uint32_t huge = 0xFFFFF000;
  std::memcpy(memory_[kBase].data() + header + 24 + 56, &huge, sizeof huge);
  R2rMemoryImages images(Options());
  const Mapping mapping = Code();
  EXPECT_FALSE(images.Find(MakeProcess(), mapping, mapping.start + 100, kNow).has_value());
}

TEST_F(R2rMemoryImagesTest, WhatAllImagesTakeIsBounded) {
  WriteMaps(TypicalMaps(), 4712);
  const Mapping mapping = Code();
  for (uint64_t limit = 4096; limit < 1 << 20; limit += 512) {
    R2rMemoryOptions options = Options();
    options.max_total_bytes = limit;
    R2rMemoryImages images(std::move(options));
    const auto first = images.Find(MakeProcess(), mapping, mapping.start + 100, kNow);
    if (!first) continue;
    // Just enough for one.
    EXPECT_GT(first->image->copied_bytes, 4096u);
    EXPECT_FALSE(images.Find(MakeProcess(4712), mapping, mapping.start + 100, kNow).has_value());
    EXPECT_EQ(images.counters().images_failed, 1u);
    return;
  }
  FAIL() << "never enough";
}

}  // namespace
}  // namespace clrsampler
