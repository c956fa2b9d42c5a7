#include "formats/pe/loaded_image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "unit/formats/pe/fixture.h"
#include "unit/formats/pe/loaded_fixture.h"

namespace clrsampler {
namespace {

constexpr uint64_t kPlenty = 16 << 20;

// An image of .NET 11 as far as its parts go. Its last methods are in no table but that of debug information, as stubs
// are that resume async methods.
std::string WithResumptionStubs(std::string file) {
  const auto pe = PeImage::Parse(AsBytes(file));
  const uint32_t native_header = *LoadAt<uint32_t>(AsBytes(file), *pe->OffsetOfRva(pe->cli_header().rva) + 64);
  file[*pe->OffsetOfRva(native_header) + 4] = static_cast<char>(kRuntimeAsyncR2rMajor);
  const RvaRange methods = pe->r2r()->core.Find(R2rSectionType::kMethodDefEntryPoints)->range;
  const uint64_t at = *pe->OffsetOfRva(methods.rva);
  const uint16_t length = *LoadAt<uint16_t>(AsBytes(file), at);  // a number of two bytes
  EXPECT_EQ(length & 3, 1);
  const uint16_t shorter = length - (10 << 4);
  std::memcpy(file.data() + at, &shorter, sizeof shorter);
  return file;
}

void ExpectSameFunctions(const R2rImage& got, const R2rImage& expected) {
  ASSERT_EQ(got.function_count(), expected.function_count());
  for (uint32_t i = 0; i < expected.function_count(); ++i) {
    const auto one = got.Function(i), other = expected.Function(i);
    ASSERT_EQ(one->begin, other->begin);
    ASSERT_EQ(one->end, other->end);
    ASSERT_EQ(one->method, other->method);
    ASSERT_EQ(one->part, other->part);
  }
}

std::vector<std::byte> Zeroes(const std::string& memory) { return std::vector<std::byte>(memory.size()); }

// Everything the names need is copied, and nothing else: what is left out is zero.
TEST(LoadedImageTest, GivesTheNamesOfTheFile) {
  for (const char* name : {"8.0.30-x64/shapes.dll", "8.0.30-arm64/shapes.dll", "9.0.19-x64/shapes.dll",
                           "9.0.19-arm64/shapes.dll", "10.0.14-x64/shapes.dll", "10.0.14-arm64/shapes.dll",
                           "10.0.14-x64-hot-cold/shapes.dll", "10.0.14-x64-composite/both.r2r.dll"}) {
    SCOPED_TRACE(name);
    const std::string file = ReadFixture(name);
    const std::string memory = LaidOut(file);
    std::vector<std::byte> copy = Zeroes(memory);
    const auto loaded = CopyLoadedImage(ReaderOf(memory), kPlenty, copy);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    const auto from_memory = R2rImage::Open(loaded->pe, "shapes");
    ASSERT_TRUE(from_memory.ok()) << from_memory.status();
    const auto from_file = OpenR2r(file);
    ASSERT_TRUE(from_file.ok());
    ASSERT_NO_FATAL_FAILURE(ExpectSameFunctions(**from_memory, **from_file));
    ASSERT_GT((*from_file)->function_count(), 60u);
    FixtureOpener opener(std::string(name).substr(0, std::string(name).find('/')));
    for (uint32_t i = 0; i < (*from_file)->function_count(); ++i) {
      const auto expected = (*from_file)->Function(i), got = (*from_memory)->Function(i);
      const auto text = (*from_file)->Name(expected->method, opener), other = (*from_memory)->Name(got->method, opener);
      ASSERT_EQ(text.ok(), other.ok());
      if (!text.ok()) continue;
      EXPECT_EQ(R2rMapText(text->name), R2rMapText(other->name));
    }
    const auto entries = loaded->pe.PerfMapEntries();
    const auto expected_entries = PeImage::Parse(AsBytes(file))->PerfMapEntries();
    ASSERT_EQ(entries.size(), expected_entries.size());
    for (size_t i = 0; i < entries.size(); ++i) EXPECT_EQ(entries[i].signature, expected_entries[i].signature);

    uint64_t copied = 0;
    for (const RvaRange& range : loaded->copied) copied += range.bytes;
    EXPECT_LT(copied, file.size() + kImageHeaderBytes);
  }
}

// A stub that is taken for a funclet has its caller searched in the frame of another method.
TEST(LoadedImageTest, StubsThatResumeAsyncMethodsAreNoFunclets) {
  for (const char* name : {"10.0.14-x64/shapes.dll", "10.0.14-arm64/shapes.dll"}) {
    SCOPED_TRACE(name);
    const std::string file = WithResumptionStubs(ReadFixture(name));
    const std::string memory = LaidOut(file);
    std::vector<std::byte> copy = Zeroes(memory);
    const auto loaded = CopyLoadedImage(ReaderOf(memory), kPlenty, copy);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    const auto from_memory = R2rImage::Open(loaded->pe, "shapes"), from_file = OpenR2r(file);
    ASSERT_TRUE(from_memory.ok() && from_file.ok()) << from_memory.status() << from_file.status();
    ExpectSameFunctions(**from_memory, **from_file);
    uint32_t stubs = 0;
    for (uint32_t i = 0; i < (*from_memory)->function_count(); ++i) {
      stubs += (*from_memory)->Function(i)->part == R2rPart::kResumptionStub;
    }
    EXPECT_GT(stubs, 0u);
  }
}

TEST(LoadedImageTest, ALoadedImageHasItsBytesAtTheirAddresses) {
  const std::string memory = LaidOut(ReadFixture("10.0.14-x64/shapes.dll"));
  const auto pe = PeImage::Parse(AsBytes(memory), PeLayout::kLoaded);
  ASSERT_TRUE(pe.ok());
  const uint32_t rva = pe->sections().front().rva;
  EXPECT_EQ(pe->OffsetOfRva(rva), rva);
  EXPECT_EQ(pe->RvaOfOffset(rva), rva);
  EXPECT_EQ(pe->OffsetOfRva(0), std::nullopt);
}

TEST(LoadedImageTest, MemoryThatCannotBeReadGivesNoImage) {
  const std::string memory = LaidOut(ReadFixture("10.0.14-x64/shapes.dll"));
  // One read fails, the first, the second, ...: until all succeed.
  for (int failing = 0;; ++failing) {
    std::vector<std::byte> copy = Zeroes(memory);
    int reads = 0;
    const ImageReader reader = ReaderOf(memory);
    const auto loaded = CopyLoadedImage(
        [&](uint32_t rva, std::span<std::byte> into) { return reads++ != failing && reader(rva, into); }, kPlenty,
        copy);
    if (reads <= failing) {
      EXPECT_TRUE(loaded.ok());
      EXPECT_GT(failing, 8);
      return;
    }
    ASSERT_EQ(loaded.status().code(), absl::StatusCode::kUnavailable);
  }
}

TEST(LoadedImageTest, NoMoreIsCopiedThanAllowed) {
  const std::string memory = LaidOut(ReadFixture("10.0.14-x64/shapes.dll"));
  std::vector<std::byte> copy = Zeroes(memory);
  uint64_t read = 0;
  const ImageReader reader = ReaderOf(memory);
  const auto loaded = CopyLoadedImage(
      [&](uint32_t rva, std::span<std::byte> into) {
        read += into.size();
        return reader(rva, into);
      },
      8192, copy);
  EXPECT_EQ(loaded.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_LE(read, 8192u);
}

TEST(LoadedImageTest, TablesOutsideTheImageAreRefused) {
  const std::string file = ReadFixture("10.0.14-x64/shapes.dll");
  const std::string memory = LaidOut(file);
  const auto pe = PeImage::Parse(AsBytes(memory), PeLayout::kLoaded);
  const uint32_t native_header = *LoadAt<uint32_t>(AsBytes(memory), pe->cli_header().rva + 64);
  for (const uint32_t at : {native_header + 12, native_header + 16 + 4, native_header + 16 + 8}) {  // count, RVA, size
    std::string damaged = memory;
    for (int i = 0; i < 4; ++i) damaged[at + static_cast<uint32_t>(i)] = '\x7F';
    std::vector<std::byte> copy = Zeroes(memory);
    const auto loaded = CopyLoadedImage(ReaderOf(damaged), kPlenty, copy);
    // Section 100 is not wanted, so that its place does not matter.
    EXPECT_EQ(loaded.ok(), at != native_header + 12) << loaded.status();
  }
  std::string il_only = memory;
  std::fill_n(il_only.begin() + static_cast<ptrdiff_t>(pe->cli_header().rva) + 64, 8, '\0');
  std::vector<std::byte> copy = Zeroes(memory);
  EXPECT_EQ(CopyLoadedImage(ReaderOf(il_only), kPlenty, copy).status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace clrsampler
