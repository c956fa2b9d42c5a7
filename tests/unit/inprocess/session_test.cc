#include <gtest/gtest.h>

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "library_host.h"

namespace clrsampler {
namespace {

constexpr auto kKinds = InprocessKindBit(InprocessKind::kThreadCreated);
// CORPROF_E_RUNTIME_UNINITIALIZED and CORPROF_E_PROFILER_NOT_YET_INITIALIZED, as the runtime's headers have them.
constexpr auto kRuntimeIsStarting = static_cast<Hresult>(0x80131371);
constexpr auto kProfilerIsStarting = static_cast<Hresult>(0x80131373);

class SessionTest : public testing::Test {
 protected:
  SessionTest() { g_session_host = &host_; }
  // So many requests to be unloaded; false: not in 20 s.
  bool WaitForRequests(int count) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (host_.detach_requests < count && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    return host_.detach_requests >= count;
  }
  static inline LibraryHost* g_session_host = nullptr;

  LibraryHost host_;
};

TEST_F(SessionTest, ItIsReadyBeforeTheRuntimeTellsIt) {
  host_.on_mask = [] { g_session_host->Call(kThreadCreated, RuntimeId{5}); };
  ASSERT_EQ(host_.Attach(kKinds), kOk);
  const std::vector<LibraryRecord> records = host_.Records();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].values[0], 5u);
}

TEST_F(SessionTest, WithoutAnAgentItIsSilentAndAsksToBeUnloaded) {
  ASSERT_EQ(host_.Attach(kKinds), kOk);
  host_.Call(kThreadCreated, RuntimeId{5});
  host_.CloseAgent();
  ASSERT_TRUE(WaitForRequests(1));
  host_.Call(kThreadCreated, RuntimeId{6});
  EXPECT_EQ(host_.Records().size(), 1u);
  host_.Call(kProfilerDetachSucceeded);
  EXPECT_EQ(host_.detach_requests, 1);
}

TEST_F(SessionTest, ARuntimeThatIsStartingIsAskedAgain) {
  for (const Hresult answer : {kRuntimeIsStarting, kProfilerIsStarting}) {
    host_.detach_requests = 0;
    host_.detach_answer = answer;
    ASSERT_EQ(host_.Attach(kKinds), kOk);
    host_.CloseAgent();
    ASSERT_TRUE(WaitForRequests(3));
    host_.detach_answer = kOk;
    host_.Call(kProfilerDetachSucceeded);
    EXPECT_GE(host_.detach_requests, 4);
  }
}

TEST_F(SessionTest, ARefusalIsFinal) {
  host_.detach_answer = kFailed;
  ASSERT_EQ(host_.Attach(kKinds), kOk);
  host_.CloseAgent();
  host_.Call(kProfilerDetachSucceeded);
  EXPECT_EQ(host_.detach_requests, 1);
}

TEST_F(SessionTest, NobodyIsAskedOnceTheProcessEnds) {
  host_.detach_answer = kRuntimeIsStarting;
  ASSERT_EQ(host_.Attach(kKinds), kOk);
  host_.CloseAgent();
  ASSERT_TRUE(WaitForRequests(1));
  host_.Call(kShutdown);
  const int before = host_.detach_requests;
  host_.Call(kProfilerDetachSucceeded);  // waits for the library's thread
  EXPECT_LE(host_.detach_requests, before + 1) << "one call may have been under way";
}

// Mappings of rings, the test's own one included.
size_t RingsMapped() {
  std::ifstream maps("/proc/self/maps");
  size_t count = 0;
  for (std::string line; std::getline(maps, line);) count += line.find("clrsampler-ring") != std::string::npos;
  return count;
}

TEST_F(SessionTest, ALibraryThatIsNotUnloadedGivesTheRingBack) {
  host_.detach_answer = kFailed;
  ASSERT_EQ(host_.Attach(kKinds), kOk);
  ASSERT_EQ(RingsMapped(), 2u);
  host_.CloseAgent();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (RingsMapped() > 1 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  EXPECT_EQ(RingsMapped(), 1u);
  host_.Call(kThreadCreated, RuntimeId{6});
  EXPECT_TRUE(host_.Records().empty());
}

TEST_F(SessionTest, ALibraryThatIsNotUnloadedEndsTheConnectionThoughAChildHasIt) {
  host_.detach_answer = kFailed;
  ASSERT_EQ(host_.Attach(kKinds), kOk);
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  ASSERT_GT(child, 0);
  EXPECT_TRUE(host_.StopAgent());
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

size_t OpenFiles() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(files), end(files)));
}

TEST_F(SessionTest, OneDescriptorComesAndNoOtherStays) {
  const size_t before = OpenFiles();
  host_.descriptors = 2;
  EXPECT_NE(host_.Attach(kKinds), kOk);
  host_.CloseAgent();
  EXPECT_EQ(OpenFiles(), before + 1) << "the test's own ring";
  EXPECT_EQ(RingsMapped(), 1u);
}

TEST_F(SessionTest, NoMaskChangesHowCodeIsCompiled) {
  host_.wanted_mask = ~uint32_t{0};
  ASSERT_EQ(host_.Attach(kKinds), kOk);
  EXPECT_EQ(host_.mask, kAllowedAfterAttachLow);
  host_.CloseAgent();
  host_.Call(kProfilerDetachSucceeded);
  ASSERT_EQ(host_.Start(kKinds), kOk);
  EXPECT_EQ(host_.mask, kAllowedAtStartLow);
  // COR_PRF_MONITOR_ENTERLEAVE, _ENABLE_REJIT, _DISABLE_INLINING, _DISABLE_OPTIMIZATIONS, _USE_PROFILE_IMAGES and
  // _DISABLE_ALL_NGEN_IMAGES
  EXPECT_EQ(kAllowedAtStartLow & 0xa0641000, 0u);
}

TEST_F(SessionTest, AProgramThatStartsTellsNothingToOtherUsers) {
  if (geteuid() != 0) GTEST_SKIP() << "listens as another user: needs root";
  host_.agent_user = 65534;
  EXPECT_NE(host_.Start(kKinds), kOk);
  EXPECT_EQ(host_.masks, 0);
  host_.agent_user = 0;
  EXPECT_EQ(host_.Start(kKinds), kOk);
}

// In a user namespace. How it ended: 0 as it should.
enum Ended : int { kAsItShould, kNoNamespace, kTrustedAnybody, kTrustedNobody };

Ended StartInAUserNamespace(LibraryHost& host, uid_t user) {
  if (unshare(CLONE_NEWUSER) != 0) return kNoNamespace;
  // Without a map each user has the number of this one.
  host.agent_user = geteuid();
  if (host.Start(kKinds) == kOk) return kTrustedAnybody;
  std::ofstream map("/proc/self/uid_map");
  map << "0 " << user << " 1" << std::flush;
  if (!map) return kNoNamespace;
  host.agent_user = 0;
  return host.Start(kKinds) == kOk ? kAsItShould : kTrustedNobody;
}

TEST_F(SessionTest, AUserWithoutANumberInTheNamespaceIsNotOurs) {
  const uid_t user = geteuid();
  const pid_t child = fork();
  if (child == 0) _exit(StartInAUserNamespace(host_, user));
  ASSERT_GT(child, 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNoNamespace) GTEST_SKIP() << "needs user namespaces";
  EXPECT_EQ(WEXITSTATUS(status), kAsItShould);
}

}  // namespace
}  // namespace clrsampler
