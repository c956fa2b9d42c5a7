#include "os/fd_message.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>

#include "absl/strings/string_view.h"

namespace clrsampler {
namespace {

struct Ends {
  UniqueFd ours, theirs;
};

Ends MakeEnds() {
  int ends[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

TEST(FdMessageTest, BytesComeWithoutADescriptorIfNoneWasSent) {
  const Ends ends = MakeEnds();
  ASSERT_EQ(SendFdMessage(ends.ours.get(), "seven", -1, 0), 5);
  std::array<char, 16> buffer;
  const auto message = ReceiveFdMessage(ends.theirs.get(), buffer);
  ASSERT_TRUE(message);
  EXPECT_EQ(message->bytes, "seven");
  EXPECT_FALSE(message->fd.valid());
  EXPECT_FALSE(message->truncated);
}

TEST(FdMessageTest, ADescriptorIsOfTheSameFileAndClosedByExec) {
  const Ends ends = MakeEnds();
  const UniqueFd file(memfd_create("file", MFD_CLOEXEC));
  ASSERT_EQ(pwrite(file.get(), "text", 4, 0), 4);
  ASSERT_EQ(SendFdMessage(ends.ours.get(), "x", file.get(), 0), 1);
  std::array<char, 16> buffer;
  const auto message = ReceiveFdMessage(ends.theirs.get(), buffer);
  ASSERT_TRUE(message && message->fd.valid());
  EXPECT_NE(message->fd.get(), file.get());
  EXPECT_NE(fcntl(message->fd.get(), F_GETFD) & FD_CLOEXEC, 0);
  char text[4];
  ASSERT_EQ(pread(message->fd.get(), text, sizeof text, 0), 4);
  EXPECT_EQ(absl::string_view(text, sizeof text), "text");
}

TEST(FdMessageTest, AMessageThatIsLongerThanTheBufferIsTruncated) {
  const Ends ends = MakeEnds();
  ASSERT_EQ(SendFdMessage(ends.ours.get(), "seventeen", -1, 0), 9);
  std::array<char, 5> buffer;
  const auto message = ReceiveFdMessage(ends.theirs.get(), buffer);
  ASSERT_TRUE(message);
  EXPECT_EQ(message->bytes, "seven");
  EXPECT_TRUE(message->truncated);
}

TEST(FdMessageTest, AClosedEndGivesNoMessage) {
  Ends ends = MakeEnds();
  ends.ours.reset();
  std::array<char, 16> buffer;
  EXPECT_FALSE(ReceiveFdMessage(ends.theirs.get(), buffer));
}

}  // namespace
}  // namespace clrsampler
