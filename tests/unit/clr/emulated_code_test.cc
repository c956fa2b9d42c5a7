#include "clr/emulated_code.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "process/image_files.h"
#include "unit/clr/emulated_process.h"

namespace clrsampler {
namespace {

constexpr uint64_t kBase = 0x5502f10000;

class TestClock : public Clock {
 public:
  MonotonicTime Now() const override { return now; }
  MonotonicTime now{1'000'000'000};
};

class EmulatedCodeTest : public testing::Test {
 protected:
  std::string TextAt(uint64_t address) {
    const Process& process = emulated_.process();
    const auto found = code_.Resolve({process, process.mappings.Find(address), address, address, clock_.now});
    return found.has_value() ? frames_.at(found->frame).text : "";
  }

  EmulatedProcess emulated_;
  ImageFiles images_;
  RuntimeDiscovery runtimes_{images_, RuntimeDiscovery::CacheBy::kFile};
  FrameTable frames_;
  Notices notices_;
  TestClock clock_;
  EmulatedCode code_{runtimes_, frames_, notices_, clock_};
};

TEST_F(EmulatedCodeTest, TranslatedCodeSaysWhatItIs) {
  emulated_.SetMaps(emulated_.Loaded(emulated_.Runtime(), kBase));
  EXPECT_EQ(TextAt(EmulatedProcess::kTranslated + 100), "[jit: arm64 code under emulation]");
  EXPECT_EQ(TextAt(EmulatedProcess::kTranslated + 200), "[jit: arm64 code under emulation]");
  EXPECT_EQ(TextAt(EmulatedProcess::kEmulator + 100), "") << "the emulator's own code has names of its own";
  ASSERT_EQ(notices_.kept().size(), 1u);
  EXPECT_EQ(notices_.kept()[0].message,
            "process 42 (qemu-aarch64-st, .NET 10.0.14) is an arm64 program under emulation: names are not possible; "
            "its native frames are the emulator's");
}

TEST_F(EmulatedCodeTest, ARuntimeThatIsLoadedLaterIsFoundThen) {
  const ProcessKey key = emulated_.process().key;
  emulated_.SetMaps("");
  EXPECT_EQ(TextAt(EmulatedProcess::kTranslated), "");
  emulated_.SetMaps(emulated_.Loaded(emulated_.Runtime(), kBase));
  Mapping more = *emulated_.process().mappings.Find(EmulatedProcess::kTranslated);
  more.start = more.end;
  more.end += 0x1000;
  emulated_.process().mappings.Insert(more);
  EXPECT_EQ(TextAt(EmulatedProcess::kTranslated), "") << "not before a second has passed";
  EXPECT_EQ(code_.Generation(key), 0u);
  clock_.now.ns += 1'000'000'001;
  EXPECT_EQ(TextAt(EmulatedProcess::kTranslated), "[jit: arm64 code under emulation]");
  EXPECT_EQ(code_.Generation(key), 1u);
  emulated_.process().ends->Announce(key);
  EXPECT_EQ(code_.Generation(key), 0u);
}

TEST_F(EmulatedCodeTest, ProcessesThatMakeCodeOtherwiseAreLeftAlone) {
  emulated_.SetMaps(emulated_.Loaded(emulated_.Runtime(EM_X86_64), kBase));
  EXPECT_EQ(TextAt(EmulatedProcess::kTranslated), "");
  EXPECT_TRUE(notices_.kept().empty());
}

}  // namespace
}  // namespace clrsampler
