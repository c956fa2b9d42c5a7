#include "clr/runtime_discovery.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "formats/byte_reader.h"
#include "os/file_io.h"
#include "test_paths.h"
#include "unit/clr/emulated_process.h"
#include "unit/formats/elf/find_symbol.h"
#include "unit/process/mapping_of_file.h"

namespace clrsampler {
namespace {

namespace fs = std::filesystem;

// A process that maps fixtures; its root is that of the machine.
class RuntimeDiscoveryTest : public testing::TestWithParam<RuntimeDiscovery::CacheBy> {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "runtime_discovery_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    proc_ = pattern;
    fs::create_directories(proc_ / "42");
    fs::create_directory_symlink("/", proc_ / "42" / "root");
    process_.emplace(ProcessKey{42, 1}, TargetFiles(proc_.string(), 42));
  }
  void TearDown() override { fs::remove_all(proc_); }

  static std::string Fixture(const std::string& kind) { return RuntimeFixture(kind + "/image"); }

  // Maps the image's executable segment at `start`; gives the bias that follows.
  uint64_t Map(const std::string& path, uint64_t start) {
    const auto bytes = ReadWholeFile(path, 16 << 20);
    const auto image = ElfImage::Parse(AsBytes(*bytes));
    Mapping mapping = MappingOfFile(path, start);
    uint64_t bias = 0;
    for (const LoadSegment& segment : image->segments()) {
      if (!segment.executable) continue;
      mapping.file_offset = segment.offset.value & ~uint64_t{0xfff};
      mapping.end = start + 0x1000 + (segment.file_bytes & ~uint64_t{0xfff});
      bias = start - (segment.address.value & ~uint64_t{0xfff});
    }
    process_->mappings.Insert(mapping);
    return bias;
  }
  std::optional<DotNetRuntime> Find() { return RuntimeDiscovery(images_, GetParam()).Find(*process_); }

  fs::path proc_;
  ImageFiles images_;
  std::optional<Process> process_;
};

TEST_P(RuntimeDiscoveryTest, NothingMappedIsNoRuntime) { EXPECT_EQ(Find(), std::nullopt); }

TEST_P(RuntimeDiscoveryTest, ARuntimeOfAnyNameIsFoundWithItsAddresses) {
  const uint64_t bias = Map(Fixture("CORECLR"), 0x7f0000000000);
  process_->executable = "/usr/bin/anything";
  const auto runtime = Find();
  ASSERT_TRUE(runtime.has_value());
  EXPECT_EQ(runtime->version.Text(), "10.0.14");
  EXPECT_EQ(runtime->form, DeploymentForm::kFrameworkDependent);
  EXPECT_EQ(runtime->load_bias, bias);
  const auto bytes = ReadWholeFile(Fixture("CORECLR"), 16 << 20);
  const auto symbol = FindSymbol(*ElfImage::Parse(AsBytes(*bytes)), "g_dacTable");
  EXPECT_EQ(runtime->AddressOf("g_dacTable"), symbol->address.value + bias);
  EXPECT_EQ(runtime->AddressOf("DotNetRuntimeInfo"), std::nullopt);
}

TEST_P(RuntimeDiscoveryTest, BesideTheProgramMeansSelfContained) {
  Map(Fixture("CORECLR"), 0x7f0000000000);
  process_->executable = fs::path(Fixture("CORECLR")).replace_filename("app").string();
  EXPECT_EQ(Find()->form, DeploymentForm::kSelfContained);
}

TEST_P(RuntimeDiscoveryTest, TheProgramItselfMayBeTheRuntime) {
  Map(Fixture("SINGLE_FILE"), 0x550000000000);
  process_->executable = Fixture("SINGLE_FILE");
  EXPECT_EQ(Find()->form, DeploymentForm::kSingleFile);
}

TEST_P(RuntimeDiscoveryTest, CoreClrWinsOverANativeAotLibraryInTheSameProcess) {
  Map(Fixture("NATIVE_AOT"), 0x7f0000000000);
  EXPECT_EQ(Find()->form, DeploymentForm::kNativeAot);
  Map(Fixture("CORECLR"), 0x7f0001000000);
  EXPECT_EQ(Find()->kind, RuntimeImageKind::kCoreClr);
}

TEST_P(RuntimeDiscoveryTest, AStandaloneGcIsNoted) {
  Map(Fixture("CORECLR"), 0x7f0000000000);
  EXPECT_FALSE(Find()->standalone_gc.has_value());
  Map(Fixture("STANDALONE_GC"), 0x7f0001000000);
  const std::optional<DotNetRuntime> runtime = Find();
  ASSERT_TRUE(runtime->standalone_gc.has_value());
  EXPECT_EQ(runtime->standalone_gc->path, Fixture("STANDALONE_GC"));
}

TEST_P(RuntimeDiscoveryTest, AGcAloneIsNoRuntime) {
  Map(Fixture("STANDALONE_GC"), 0x7f0001000000);
  EXPECT_EQ(Find(), std::nullopt);
}

TEST_P(RuntimeDiscoveryTest, AMapOfDataOnlyDoesNotCount) {
  Map(Fixture("CORECLR"), 0x7f0000000000);
  Mapping behind = *process_->mappings.all().begin();
  behind.file_offset = 0x10000000;
  process_->mappings.Clear();
  process_->mappings.Insert(behind);
  EXPECT_EQ(Find(), std::nullopt);
}

class EmulatedRuntimeTest : public testing::Test {
 protected:
  static constexpr uint64_t kBase = 0x5502f10000;
  std::optional<DotNetRuntime> FindEmulated() { return runtimes_.FindEmulated(emulated_.process()); }

  EmulatedProcess emulated_;
  ImageFiles images_;
  RuntimeDiscovery runtimes_{images_, RuntimeDiscovery::CacheBy::kMapping};
};

TEST_F(EmulatedRuntimeTest, IsFoundByMappingsOfData) {
  const std::string path = emulated_.Runtime();
  emulated_.SetMaps(emulated_.Loaded(path, kBase));
  EXPECT_EQ(runtimes_.Find(emulated_.process()), std::nullopt);
  const auto runtime = FindEmulated();
  ASSERT_TRUE(runtime.has_value());
  EXPECT_TRUE(runtime->emulated());
  EXPECT_EQ(runtime->kind, RuntimeImageKind::kSingleFileHost);
  EXPECT_EQ(runtime->version.Text(), "10.0.14");
  EXPECT_TRUE(runtime->AddressOf("g_dacTable").has_value());
  EXPECT_EQ(runtime->machine, ElfMachine::kArm64);
  EXPECT_EQ(runtime->mapping.path, path);
  EXPECT_EQ(runtime->load_bias, kBase);
  EXPECT_EQ(DeploymentFormText(runtime->form), "emulated");
  EXPECT_EQ(EmulationText(*runtime), "arm64 program under emulation: names are not possible");
}

TEST_F(EmulatedRuntimeTest, AFileThatIsReadIsNoProgram) {
  const std::string path = emulated_.Runtime();
  emulated_.SetMaps(emulated_.Line(path, kBase, kBase + 0x5000, "r--p", 0));
  EXPECT_EQ(FindEmulated(), std::nullopt);
}

TEST_F(EmulatedRuntimeTest, TheEmulatorsOwnMachineNeedsNone) {
  emulated_.SetMaps(emulated_.Loaded(emulated_.Runtime(EM_X86_64), kBase));
  EXPECT_EQ(FindEmulated(), std::nullopt);
}

TEST_F(EmulatedRuntimeTest, NothingIsEmulatedWithoutTranslatedCode) {
  emulated_.SetMaps(emulated_.Loaded(emulated_.Runtime(), kBase));
  const Mapping emulator = *emulated_.process().mappings.Find(EmulatedProcess::kEmulator);
  emulated_.process().mappings.Clear();
  emulated_.process().mappings.Insert(emulator);
  EXPECT_EQ(FindEmulated(), std::nullopt);
}

TEST_F(EmulatedRuntimeTest, AnEmulatorOfUnknownMachineIsNotJudged) {
  emulated_.SetMaps(emulated_.Loaded(emulated_.Runtime(), kBase));
  emulated_.process().executable = "/gone";
  EXPECT_EQ(FindEmulated(), std::nullopt);
}

// Some emulators map the code of their programs executable; the processor still runs none of it.
TEST_F(EmulatedRuntimeTest, CodeForAnotherMachineIsNeverThatOfTheProcess) {
  const std::string path = emulated_.Runtime();
  emulated_.SetMaps(emulated_.Loaded(path, kBase, "r-xp"));
  emulated_.process().mappings.Insert(MappingOfFile(path, kBase + 0x11000, 0x1000, 0x1000));
  EXPECT_EQ(runtimes_.Find(emulated_.process()), std::nullopt);
  EXPECT_TRUE(FindEmulated().has_value());
}

INSTANTIATE_TEST_SUITE_P(Caches, RuntimeDiscoveryTest,
                         testing::Values(RuntimeDiscovery::CacheBy::kFile, RuntimeDiscovery::CacheBy::kMapping));

// Composite or not, is told by the ready-to-run images that the test data hold.
TEST_P(RuntimeDiscoveryTest, CompositeImagesAreSeen) {
  Map(Fixture("CORECLR"), 0x7f0000000000);
  const auto map_pe = [&](const std::string& name, uint64_t start) {
    const std::string path = TestData("r2r/") + name;
    process_->mappings.Insert(MappingOfFile(path, start, 0x1000));
  };
  EXPECT_FALSE(Find()->precompiled);
  map_pe("10.0.14-x64/shapes.dll", 0x7f0010000000);
  EXPECT_TRUE(Find()->precompiled);
  EXPECT_EQ(Find()->composite, false);
  map_pe("10.0.14-x64-composite/both.r2r.dll", 0x7f0020000000);
  EXPECT_EQ(Find()->composite, true);
}

}  // namespace
}  // namespace clrsampler
