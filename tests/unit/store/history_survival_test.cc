// The history of a host lives through kill -9, full disks, damaged files, and clocks that jump.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "os/clock.h"
#include "os/unique_fd.h"
#include "status/status.h"
#include "store/history.h"
#include "store/sqlite.h"
#include "unit/rounds.h"
#include "unit/store/made_up_host.h"
#include "unit/store/store_folder.h"

namespace clrsampler {
namespace {

using test_support::MadeUpHost;
using test_support::StoreFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr uint64_t kHourNs = 3600 * kSecondNs, kDayNs = 24 * kHourNs;
constexpr uint64_t kSurvivalBegin = 1'790'000'000 * kSecondNs / kHourNs * kHourNs;
const HistorySelection kAll = {.from_unix_ns = 0, .to_unix_ns = ~uint64_t{0}};

test_support::MadeUpHostOptions Small(uint32_t seed = 1) {
  return {.samples = 20, .processes = 12, .methods = 300, .pauses = 5, .compilations = 5, .seed = seed};
}

std::string IntegrityOf(const std::string& path) {
  absl::StatusOr<SqliteConnection> connection = SqliteConnection::Open(path, SQLITE_OPEN_READWRITE);
  if (!connection.ok()) return std::string(connection.status().message());
  absl::StatusOr<SqliteStatement> check = connection->Prepare("PRAGMA integrity_check");
  if (!check.ok()) return std::string(check.status().message());
  SqliteRows rows = check->Run();
  const absl::StatusOr<bool> row = rows.Next();
  return row.ok() && *row ? std::string(rows.Text(0)) : "no answer";
}

TEST(HistorySurvivalTest, KilledAtAnyMomentLosesAtMostTheOpenWindow) {
  StoreFolder folder;
  // Rolled up and forgotten soon, so that it is killed in the middle of these as well.
  const HistoryLimits limits = {.max_bytes = 4 << 20, .windows_ns = 300 * kSecondNs, .minutes_ns = kHourNs};
  std::mt19937 random(3);
  uint64_t begin = kSurvivalBegin, known = 0;
  for (int round = 0; round < 20; ++round) {
    int acknowledged[2];
    ASSERT_EQ(pipe2(acknowledged, O_CLOEXEC), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto history = folder.TryOpen(limits);
      if (!history.ok()) _exit(1);
      MadeUpHost host(Small(static_cast<uint32_t>(round)), begin);
      for (int windows = 0;; ++windows) {
        // So many in each round stay within the limits, however late the signal comes: of 500 some are forgotten.
        if (windows == 150) pause();
        const Window window = host.Next();
        if (!(*history)->Append(window).ok()) _exit(2);
        if (write(acknowledged[1], &window.end_unix_ns, 8) != 8) _exit(3);
        for (int i = 0; i < 3; ++i) {
          if (!(*history)->Maintain(window.end_unix_ns).ok()) _exit(4);
        }
      }
    }
    close(acknowledged[1]);
    // Every other one has kept a window at least, however slow the machine is.
    if (round % 2 == 1) {
      ASSERT_EQ(read(acknowledged[0], &known, 8), 8);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20 + random() % 150));
    kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "it ended by itself: " << WEXITSTATUS(status);
    for (uint64_t end = 0; read(acknowledged[0], &end, 8) == 8;) known = end;
    close(acknowledged[0]);

    EXPECT_EQ(IntegrityOf(folder.path()), "ok");
    const auto history = folder.Open(limits);
    ASSERT_NE(history, nullptr);
    const absl::StatusOr<HistorySpan> span = history->Span();
    ASSERT_TRUE(span.ok());
    EXPECT_GE(span->newest_unix_ns, known);
    EXPECT_LE(span->newest_unix_ns, known + 10 * kSecondNs);
    if (known > 0) {
      EXPECT_EQ(span->oldest_unix_ns, kSurvivalBegin);
    }
    const absl::StatusOr<ProfileModel> profile = history->Profile(kAll, ProfileView::kCpu);
    ASSERT_TRUE(profile.ok()) << profile.status();
    const uint64_t windows = (span->newest_unix_ns - std::min(span->newest_unix_ns, kSurvivalBegin)) / (10 * kSecondNs);
    EXPECT_EQ(profile->total_weight, windows * 20 * 52'631'578) << "each window is there, whole";
    EXPECT_EQ(history->Span()->damaged_parts, 0u);
    begin = kSurvivalBegin + windows * 10 * kSecondNs;
  }
  EXPECT_GT(known, kSurvivalBegin);
  EXPECT_THAT(folder.said, IsEmpty());
}

// A disk that is full: a small tmpfs as root, else a limit on the sizes of files.
class SmallDisk {
 public:
  explicit SmallDisk(const std::string& folder) : folder_(folder) {
    mounted_ = mount("none", folder.c_str(), "tmpfs", 0, "size=2m,mode=0700") == 0;
    if (mounted_) return;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    Limit(1 << 20);
  }
  ~SmallDisk() {
    if (mounted_) {
      umount2(folder_.c_str(), MNT_DETACH);
    } else {
      setrlimit(RLIMIT_FSIZE, &before_);
    }
  }
  // Whether no byte more fits.
  bool Fill(const std::string& path) {
    if (!mounted_) return false;
    const std::string block(4096, 'x');
    const UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    while (write(file.get(), block.data(), block.size()) > 0) {
    }
    return errno == ENOSPC;
  }
  void MakeRoom() {
    if (mounted_) {
      EXPECT_EQ(mount("none", folder_.c_str(), "tmpfs", MS_REMOUNT, "size=64m"), 0);
    } else {
      setrlimit(RLIMIT_FSIZE, &before_);
    }
  }

 private:
  void Limit(rlim_t bytes) const {
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  std::string folder_;
  rlimit before_{};
  bool mounted_ = false;
};

TEST(HistorySurvivalTest, AFullDiskLosesNothingThatIsThere) {
  StoreFolder folder;
  SmallDisk disk(folder.folder());
  {
    const auto history = folder.Open();
    ASSERT_NE(history, nullptr);
    MadeUpHost host({.samples = 400, .processes = 12, .methods = 2000}, kSurvivalBegin);
    size_t kept = 0;
    absl::Status status;
    for (; kept < 10'000; ++kept) {
      status = history->Append(host.Next());
      if (!status.ok()) break;
    }
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_THAT(HintOf(status), HasSubstr("make room"));
    ASSERT_GT(kept, 3u);
    const uint64_t weight = history->Profile(kAll, ProfileView::kCpu)->total_weight;
    EXPECT_EQ(weight, kept * 400 * 52'631'578);
    for (int i = 0; i < 5; ++i) {
      if (history->Append(host.Next()).ok()) ++kept;  // a smaller one may still fit
      const absl::StatusOr<bool> more = history->Maintain(host.now_unix_ns());
      EXPECT_TRUE(more.ok() || absl::IsResourceExhausted(more.status())) << more.status();
    }
    disk.MakeRoom();
    for (int i = 0; i < 20; ++i) {
      const absl::Status again = history->Append(host.Next());
      EXPECT_TRUE(again.ok()) << again;
      ++kept;
    }
    const absl::StatusOr<ProfileModel> profile = history->Profile(kAll, ProfileView::kCpu);
    ASSERT_TRUE(profile.ok()) << profile.status();
    EXPECT_EQ(profile->total_weight, kept * 400 * 52'631'578);
    EXPECT_EQ(history->Span()->windows, kept);
    EXPECT_EQ(history->Span()->damaged_parts, 0u);
  }
  EXPECT_EQ(IntegrityOf(folder.path()), "ok");
  EXPECT_THAT(folder.said, IsEmpty());
}

TEST(HistorySurvivalTest, ADiskThatIsFullAtTheStartIsTriedAgain) {
  StoreFolder folder;
  SmallDisk disk(folder.folder());
  MadeUpHost host({.samples = 40, .processes = 3, .methods = 100}, kSurvivalBegin);
  {
    const auto history = folder.Open();
    ASSERT_NE(history, nullptr);
    ASSERT_TRUE(history->Append(host.Next()).ok());
  }
  if (!disk.Fill(absl::StrCat(folder.folder(), "/filler"))) GTEST_SKIP() << "filling a disk needs root";
  const auto history = folder.Open();
  ASSERT_NE(history, nullptr);
  EXPECT_THAT(folder.said, ElementsAre(HasSubstr("can't be written yet")));
  EXPECT_FALSE(history->Span().ok());
  const absl::Status status = history->Append(host.Next());
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  disk.MakeRoom();
  const absl::Status again = history->Append(host.Next());
  EXPECT_TRUE(again.ok()) << again;
  EXPECT_EQ(history->Span()->windows, 2u) << "what was there before, and the last one";
}

void AskEverything(History& history) {
  for (const ProfileView view :
       {ProfileView::kCpu, ProfileView::kJit, ProfileView::kPause, ProfileView::kSuspendDelay}) {
    (void)history.Profile(kAll, view);
  }
  (void)history.Profile({.to_unix_ns = ~uint64_t{0}, .pid = 1001, .thread = "main"}, ProfileView::kCpu);
  (void)history.Timeline(kAll, TimelineBy::kProcess, 50, 5);
  (void)history.Timeline({.from_unix_ns = kSurvivalBegin, .to_unix_ns = kSurvivalBegin + kHourNs, .thread = "main"},
                         TimelineBy::kContainer, 50, 5);
  (void)history.Pauses(kAll, 10);
  (void)history.Methods(kAll, 10);
  (void)history.Health(0, ~uint64_t{0});
  (void)history.Span();
}

TEST(HistorySurvivalTest, AnyDamageIsSurvivedAndSaid) {
  std::string whole;
  {
    StoreFolder folder;
    {
      const auto history = folder.Open({.windows_ns = 120 * kSecondNs});
      MadeUpHost host(Small(), kSurvivalBegin);
      for (int i = 0; i < 24; ++i) ASSERT_TRUE(history->Append(host.Next()).ok());
      while (*history->Maintain(host.now_unix_ns())) continue;
    }
    std::ifstream file(folder.path(), std::ios::binary);
    whole.assign(std::istreambuf_iterator<char>(file), {});
  }
  ASSERT_GT(whole.size(), 30'000u);
  std::mt19937 random(5);
  int set_aside = 0, refused = 0, parts = 0;
  for (int round = 0; round < Rounds(200); ++round) {
    SCOPED_TRACE(round);
    std::string damaged = whole;
    switch (round % 4) {
      case 0:  // some bits
        for (int i = 0; i < 1 + round / 4; ++i)
          damaged[random() % damaged.size()] ^= static_cast<char>(1 << random() % 8);
        break;
      case 1:  // cut
        damaged.resize(random() % damaged.size());
        break;
      case 2:  // a page of noise
        for (size_t at = random() % damaged.size() / 4096 * 4096, i = 0; i < 4096; ++i) {
          damaged[at + i] = static_cast<char>(random());
        }
        break;
      default:  // a stretch of zeros
        for (size_t at = random() % damaged.size(), i = 0; i < 6000 && at + i < damaged.size(); ++i)
          damaged[at + i] = 0;
    }
    StoreFolder folder;
    std::ofstream(folder.path(), std::ios::binary) << damaged;
    absl::StatusOr<std::unique_ptr<History>> history = folder.TryOpen({.windows_ns = 120 * kSecondNs});
    if (!history.ok()) {
      // Its first bytes say that it is somebody else's.
      EXPECT_TRUE(absl::IsFailedPrecondition(history.status())) << history.status();
      ++refused;
      continue;
    }
    AskEverything(**history);
    MadeUpHost host(Small(2), kSurvivalBegin + kHourNs);
    uint64_t kept = 0;  // since the file was set aside, if it was
    for (int i = 0; i < 3; ++i) {
      size_t before = folder.said.size();
      const absl::Status appended = (*history)->Append(host.Next());
      EXPECT_TRUE(appended.ok()) << appended;
      kept = folder.said.size() > before ? 1 : kept + 1;
      before = folder.said.size();
      const absl::StatusOr<bool> more = (*history)->Maintain(host.now_unix_ns());
      EXPECT_TRUE(more.ok()) << more.status();
      if (folder.said.size() > before) kept = 0;
    }
    AskEverything(**history);
    const HistorySelection newest = {.from_unix_ns = kSurvivalBegin + kHourNs,
                                     .to_unix_ns = kSurvivalBegin + 2 * kHourNs};
    const absl::StatusOr<ProfileModel> profile = (*history)->Profile(newest, ProfileView::kCpu);
    ASSERT_TRUE(profile.ok()) << profile.status();
    EXPECT_EQ(profile->total_weight, kept * 20 * 52'631'578) << "what comes after the damage is kept";
    parts += (*history)->Span()->damaged_parts > 0 ? 1 : 0;
    if (!folder.said.empty()) {
      ++set_aside;
      EXPECT_THAT(folder.said[0], HasSubstr("set aside"));
    }
  }
  EXPECT_GT(set_aside, Rounds(100));
  EXPECT_GE(parts, Rounds(6));
  EXPECT_LT(refused, Rounds(20));
}

TEST(HistorySurvivalTest, DamageThatAQuestionMeetsIsSetAsideByTheWriter) {
  StoreFolder folder;
  const auto history = folder.Open();
  MadeUpHost host(Small(), kSurvivalBegin);
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(history->Append(host.Next()).ok());
  {
    // All but the first page; what the writer has in its cache it does not see.
    const int file = open(folder.path().c_str(), O_WRONLY | O_CLOEXEC);
    const std::string noise(4096, '\x5a');
    struct stat info;
    ASSERT_EQ(fstat(file, &info), 0);
    for (off_t at = 4096; at < info.st_size; at += 4096) ASSERT_EQ(pwrite(file, noise.data(), 4096, at), 4096);
    close(file);
    std::filesystem::resize_file(folder.path() + "-wal", 0);
  }
  AskEverything(*history);
  const absl::Status appended = history->Append(host.Next());
  EXPECT_TRUE(appended.ok()) << appended;
  ASSERT_THAT(folder.said, SizeIs(1));
  EXPECT_THAT(folder.said[0], HasSubstr("set aside as"));
  EXPECT_EQ(history->Span()->windows, 1u);
  EXPECT_EQ(history->Profile(kAll, ProfileView::kCpu)->total_weight, 20 * uint64_t{52'631'578});
}

TEST(HistorySurvivalTest, ClocksThatJumpLoseNothing) {
  StoreFolder folder;
  const auto history = folder.Open({.windows_ns = kHourNs});
  MadeUpHost host(Small(), kSurvivalBegin);
  const auto append = [&](int windows) {
    for (int i = 0; i < windows; ++i) {
      ASSERT_TRUE(history->Append(host.Next()).ok());
      const absl::StatusOr<bool> more = history->Maintain(host.now_unix_ns());
      ASSERT_TRUE(more.ok()) << more.status();
    }
  };
  const auto weight = [&] { return history->Profile(kAll, ProfileView::kCpu)->total_weight / 52'631'578 / 20; };
  append(50);
  host.SkipTo(kSurvivalBegin + 3000 * kDayNs);  // a clock that is wrong for a moment
  append(20);
  EXPECT_EQ(weight(), 70u) << "nothing is too old by a clock that nobody believes yet";
  host.SkipTo(kSurvivalBegin + 300 * kSecondNs);  // and right again: these overlap
  append(50);
  EXPECT_EQ(weight(), 120u);
  EXPECT_EQ(history->Profile({.from_unix_ns = kSurvivalBegin + 300 * kSecondNs,
                              .to_unix_ns = kSurvivalBegin + 500 * kSecondNs},
                             ProfileView::kCpu)
                    ->total_weight /
                52'631'578 / 20,
            40u)
      << "both times";
  const absl::StatusOr<Timeline> timeline = history->Timeline(
      {.from_unix_ns = kSurvivalBegin, .to_unix_ns = kSurvivalBegin + 800 * kSecondNs}, TimelineBy::kProcess, 80, 100);
  ASSERT_TRUE(timeline.ok());
  double cores = 0;
  for (const TimelineSeries& series : timeline->series) cores += series.cores[40];
  EXPECT_NEAR(cores, 20 * 0.052631578 / 10, 1e-6) << "a mean, not a sum";
  append(400);  // an hour and more: the clock is believed, and roll-ups go on
  EXPECT_GT(history->Span()->minutes, 0u);
  EXPECT_EQ(weight(), 520u);
}

TEST(HistorySurvivalTest, ARestartIsNoReasonToBelieveAClock) {
  StoreFolder folder;
  MadeUpHost host(Small(), kSurvivalBegin);
  const auto run = [&](int windows) {
    const auto history = folder.Open({.windows_ns = 1800 * kSecondNs});
    ASSERT_NE(history, nullptr);
    for (int i = 0; i < windows; ++i) {
      ASSERT_TRUE(history->Append(host.Next()).ok());
      const absl::StatusOr<bool> more = history->Maintain(host.now_unix_ns());
      ASSERT_TRUE(more.ok()) << more.status();
    }
  };
  const auto kept = [&] {
    const auto history = folder.Open();
    return history->Profile(kAll, ProfileView::kCpu)->total_weight / 52'631'578 / 20;
  };
  const auto minutes = [&] { return folder.Open()->Span()->minutes; };
  run(150);
  run(60);
  EXPECT_GT(minutes(), 0u) << "a file without a jump is believed from the start";
  host.SkipTo(kSurvivalBegin + 3000 * kDayNs);
  run(5);
  run(5);  // SIGHUP while the clock is wrong
  host.SkipTo(kSurvivalBegin + 2200 * kSecondNs);
  run(5);
  EXPECT_EQ(kept(), 225u);
  const uint64_t before = minutes();
  run(200);
  EXPECT_EQ(minutes(), before);
  run(200);
  EXPECT_GT(minutes(), before) << "the hour of several runs counts";
  EXPECT_EQ(kept(), 625u);
}

}  // namespace
}  // namespace clrsampler
