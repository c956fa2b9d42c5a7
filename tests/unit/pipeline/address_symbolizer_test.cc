// On this process, which every user may read.
#include "pipeline/address_symbolizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>

namespace clrsampler {

__attribute__((noinline)) int AFunctionWithAName(int x) {
  asm volatile("");
  return x + 1;
}

namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(AddressSymbolizerTest, NamesFunctionsOfARunningProgram) {
  const auto symbolizer = AddressSymbolizer::Create(static_cast<uint32_t>(getpid()), {});
  ASSERT_TRUE(symbolizer.ok()) << symbolizer.status();
  const uint64_t within = reinterpret_cast<uint64_t>(&AFunctionWithAName) + 1;
  const uint64_t nothing = 8;
  const std::vector<Frame> frames = (*symbolizer)->Name(std::vector<uint64_t>{within, nothing});
  ASSERT_THAT(frames, SizeIs(2));
  EXPECT_THAT(frames[0].text, HasSubstr("AFunctionWithAName"));
  EXPECT_THAT(frames[1].text, Not(HasSubstr("AFunctionWithAName")));
  EXPECT_THAT((*symbolizer)->notices(), IsEmpty());
}

TEST(AddressSymbolizerTest, WithoutARuntimeThereIsNoManagedCodeToDraw) {
  const auto symbolizer = AddressSymbolizer::Create(static_cast<uint32_t>(getpid()), {});
  ASSERT_TRUE(symbolizer.ok()) << symbolizer.status();
  const auto drawn = (*symbolizer)->RandomCode(10, 1);
  ASSERT_TRUE(absl::IsFailedPrecondition(drawn.status())) << drawn.status();
  EXPECT_THAT(drawn.status().message(), HasSubstr("no .NET runtime was found in it"));
}

TEST(AddressSymbolizerTest, SaysThatTheMemoryWasLeftOut) {
  const auto symbolizer = AddressSymbolizer::Create(static_cast<uint32_t>(getpid()), {.without_memory = true});
  ASSERT_TRUE(symbolizer.ok()) << symbolizer.status();
  EXPECT_THAT((*symbolizer)->RandomCode(10, 1).status().message(), HasSubstr("it was left out"));
}

TEST(AddressSymbolizerTest, AProcessThatIsGoneIsNotFound) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  const auto symbolizer = AddressSymbolizer::Create(static_cast<uint32_t>(child), {});
  EXPECT_TRUE(absl::IsNotFound(symbolizer.status())) << symbolizer.status();
}

}  // namespace
}  // namespace clrsampler
