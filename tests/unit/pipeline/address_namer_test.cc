// On this process, which every user may read.
#include "pipeline/address_namer.h"

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

TEST(AddressNamerTest, NamesFunctionsOfARunningProgram) {
  const auto namer = AddressNamer::Create(static_cast<uint32_t>(getpid()), {});
  ASSERT_TRUE(namer.ok()) << namer.status();
  const uint64_t within = reinterpret_cast<uint64_t>(&AFunctionWithAName) + 1;
  const uint64_t nothing = 8;
  const std::vector<Frame> frames = (*namer)->Name(std::vector<uint64_t>{within, nothing});
  ASSERT_THAT(frames, SizeIs(2));
  EXPECT_THAT(frames[0].text, HasSubstr("AFunctionWithAName"));
  EXPECT_THAT(frames[1].text, Not(HasSubstr("AFunctionWithAName")));
  EXPECT_THAT((*namer)->notices(), IsEmpty());
}

TEST(AddressNamerTest, WithoutARuntimeThereIsNoManagedCodeToDraw) {
  const auto namer = AddressNamer::Create(static_cast<uint32_t>(getpid()), {});
  ASSERT_TRUE(namer.ok()) << namer.status();
  const auto drawn = (*namer)->RandomCode(10, 1);
  ASSERT_TRUE(absl::IsFailedPrecondition(drawn.status())) << drawn.status();
  EXPECT_THAT(drawn.status().message(), HasSubstr("no .NET runtime was found in it"));
}

TEST(AddressNamerTest, SaysThatTheMemoryWasLeftOut) {
  const auto namer = AddressNamer::Create(static_cast<uint32_t>(getpid()), {.without_memory = true});
  ASSERT_TRUE(namer.ok()) << namer.status();
  EXPECT_THAT((*namer)->RandomCode(10, 1).status().message(), HasSubstr("it was left out"));
}

TEST(AddressNamerTest, AProcessThatIsGoneIsNotFound) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  const auto namer = AddressNamer::Create(static_cast<uint32_t>(child), {});
  EXPECT_TRUE(absl::IsNotFound(namer.status())) << namer.status();
}

}  // namespace
}  // namespace clrsampler
