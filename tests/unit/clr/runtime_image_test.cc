#include "clr/runtime_image.h"

#include <gtest/gtest.h>

#include <string>

#include "formats/byte_reader.h"
#include "os/file_io.h"
#include "test_paths.h"

namespace clrsampler {
namespace {

RuntimeImage Read(const std::string& kind) {
  const auto bytes = ReadWholeFile(RuntimeFixture(kind + "/image"), 16 << 20);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  if (!bytes.ok()) return {};
  const auto image = ElfImage::Parse(AsBytes(*bytes));
  EXPECT_TRUE(image.ok()) << image.status();
  return image.ok() ? ReadRuntimeImage(*image) : RuntimeImage{};
}

TEST(RuntimeImageTest, EachKindIsToldByItsExports) {
  EXPECT_EQ(Read("CORECLR").kind, RuntimeImageKind::kCoreClr);
  EXPECT_EQ(Read("SINGLE_FILE").kind, RuntimeImageKind::kSingleFileHost);
  EXPECT_EQ(Read("NATIVE_AOT").kind, RuntimeImageKind::kNativeAot);
  EXPECT_EQ(Read("MONO").kind, RuntimeImageKind::kMono);
  EXPECT_EQ(Read("STANDALONE_GC").kind, RuntimeImageKind::kStandaloneGc);
}

TEST(RuntimeImageTest, ASymbolOfThatNameWithoutTheCookieIsNoRuntime) {
  EXPECT_EQ(Read("IMPOSTOR").kind, RuntimeImageKind::kNone);
}

TEST(RuntimeImageTest, VersionsComeFromTheMarkOrTheMetadata) {
  EXPECT_EQ(Read("CORECLR").version.Text(), "10.0.14");
  EXPECT_EQ(Read("SINGLE_FILE").version.Text(), "10.0.14");
  EXPECT_EQ(Read("NATIVE_AOT").version.Text(), "9.0.20");
  EXPECT_EQ(Read("MONO").version.Text(), "unknown");
}

TEST(RuntimeImageTest, LibcIsTheOneOfTheLoader) {
  EXPECT_EQ(LibcOfInterpreter("/lib64/ld-linux-x86-64.so.2"), LibcFlavour::kGlibc);
  EXPECT_EQ(LibcOfInterpreter("/lib/ld-linux-aarch64.so.1"), LibcFlavour::kGlibc);
  EXPECT_EQ(LibcOfInterpreter("/lib/ld-musl-x86_64.so.1"), LibcFlavour::kMusl);
  EXPECT_EQ(LibcOfInterpreter(""), LibcFlavour::kUnknown);
  EXPECT_EQ(LibcOfInterpreter("/system/bin/linker64"), LibcFlavour::kUnknown);
}

}  // namespace
}  // namespace clrsampler
