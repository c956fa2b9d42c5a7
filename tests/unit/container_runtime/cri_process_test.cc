#include "container_runtime/cri_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "container_runtime/cri_wire.h"
#include "os/unique_fd.h"

namespace clrsampler {
namespace {

using ::testing::HasSubstr;

constexpr int kLongMs = 60'000;

CriAnswer AnswerFrom(const std::string& socket) {
  const std::unique_ptr<CriHelper> helper = StartCriHelper(socket);
  EXPECT_TRUE(helper->Send(CriQuestionText({helper->NextNumber(), {std::string(64, 'a')}})));
  helper->WaitMs(kLongMs);
  const std::optional<std::string> text = helper->Receive();
  const std::optional<CriAnswer> answer = text ? ParseCriAnswer(*text) : std::nullopt;
  EXPECT_TRUE(answer.has_value());
  return answer.value_or(CriAnswer());
}

TEST(CriProcessTest, ASocketThatIsNotThereIsToldWithAHint) {
  const CriAnswer answer = AnswerFrom("/nonexistent/cri.sock");
  EXPECT_EQ(answer.number, 1u);
  EXPECT_EQ(answer.result, CriResult::kUnreachable);
  EXPECT_THAT(answer.failure, HasSubstr("/nonexistent/cri.sock: No such file"));
  EXPECT_THAT(answer.hint, HasSubstr("/run/containerd/containerd.sock"));
}

TEST(CriProcessTest, ARuntimeThatSaysNothingIsGivenUp) {
  std::string folder = (std::filesystem::temp_directory_path() / "cri_process_XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/cri.sock";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(path.begin(), path.end(), address.sun_path);
  const UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(listener.get(), 4), 0);
  const CriAnswer answer = AnswerFrom(path);
  EXPECT_EQ(answer.result, CriResult::kUnreachable);
  EXPECT_THAT(answer.failure, HasSubstr("gives no answer"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace clrsampler
