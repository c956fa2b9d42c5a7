#include "process/file_broker.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "formats/proc/stat_text.h"
#include "os/clock.h"
#include "os/file_io.h"
#include "process/target_files.h"

namespace clrsampler {
namespace {

namespace fs = std::filesystem;

constexpr int kLongMs = 60'000;
// A busy machine is nothing that these tests are about.
constexpr FilePatience kPatient = {
    .answer_ns = 60 * kSecondNs, .copy_ns = 60 * kSecondNs, .most_ns = 60 * kSecondNs, .nursery_ns = 60 * kSecondNs};

class FileBrokerTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "file_broker_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    std::ofstream(folder_ / "file") << "content";
    StartBroker(kPatient);
  }
  void TearDown() override { fs::remove_all(folder_); }

  void StartBroker(const FilePatience& patience) {
    broker_ = nullptr;
    auto broker = FileBroker::Start([] { return absl::OkStatus(); }, patience);
    ASSERT_TRUE(broker.ok()) << broker.status();
    broker_ = *std::move(broker);
    broker_->ReportTo(&notices_);
  }
  FileQuestion AboutFile() const { return {.kind = FileQuestionKind::kHost, .path = (folder_ / "file").string()}; }
  pid_t WorkerPid() const {
    const std::string pid = std::to_string(broker_->nursery_pid());
    std::ifstream children("/proc/" + pid + "/task/" + pid + "/children");
    pid_t child = -1;
    children >> child;
    return child > 0 ? child : -1;
  }
  static bool IsStopped(pid_t pid) {
    const absl::StatusOr<std::string> text = ReadWholeFile("/proc/" + std::to_string(pid) + "/stat", 4096);
    const absl::StatusOr<StatText> stat = text.ok() ? ParseStat(*text) : text.status();
    return stat.ok() && stat->state == 'T';
  }

  fs::path folder_;
  Notices notices_;
  std::unique_ptr<FileBroker> broker_;
};

TEST_F(FileBrokerTest, AnswersWhatThisProcessWouldSee) {
  const FileAnswer theirs = broker_->Ask(AboutFile(), -1, "place"), ours = AnswerFileQuestion(AboutFile(), -1);
  ASSERT_TRUE(theirs.status.ok()) << theirs.status;
  EXPECT_EQ(theirs.file.st_ino, ours.file.st_ino);
  EXPECT_EQ(theirs.file.st_size, 7);
  EXPECT_EQ(theirs.may_wait, ours.may_wait);
  FileQuestion missing = AboutFile();
  missing.path += "x";
  EXPECT_EQ(broker_->Ask(missing, -1, "place").status, AnswerFileQuestion(missing, -1).status);
}

TEST_F(FileBrokerTest, GivesDescriptorsAndTexts) {
  const FileAnswer file = broker_->Ask(AboutFile(), -1, "place");
  ASSERT_TRUE(file.fd.valid());
  FileQuestion read{.kind = FileQuestionKind::kRead, .offset = 3, .bytes = 100};
  EXPECT_EQ(broker_->Ask(read, file.fd.get(), "place").text, "tent");
  // More than a datagram holds.
  FileQuestion text{.kind = FileQuestionKind::kProcText, .proc_root = folder_.string(), .pid = 1, .path = "long"};
  fs::create_directory(folder_ / "1");
  std::ofstream(folder_ / "1/long") << std::string(1'000'000, 'x');
  text.bytes = 2'000'000;
  EXPECT_EQ(broker_->Ask(text, -1, "place").text, std::string(1'000'000, 'x'));
}

TEST_F(FileBrokerTest, CopiesContent) {
  const FileAnswer file = broker_->Ask(AboutFile(), -1, "place");
  ASSERT_TRUE(file.status.ok());
  const auto copy = broker_->MapCopy(7, file.fd.get(), file.file, 1000);
  ASSERT_TRUE(copy.ok()) << copy.status();
  ASSERT_EQ(copy->bytes().size(), 7u);
  EXPECT_EQ(std::memcmp(copy->bytes().data(), "content", 7), 0);
  EXPECT_FALSE(broker_->MapCopy(7, file.fd.get(), file.file, 6).ok());
}

TEST_F(FileBrokerTest, AProcessHasAShareOfTheRoomForCopies) {
  const uint64_t bytes = FileBroker::kMaxCopiedBytesOfProcess / 2;
  fs::resize_file(folder_ / "file", bytes);
  const FileAnswer file = broker_->Ask(AboutFile(), -1, "place");
  ASSERT_TRUE(file.status.ok());
  const auto copy = [&](uint32_t pid) { return broker_->MapCopy(pid, file.fd.get(), file.file, UINT64_MAX); };
  std::vector<absl::StatusOr<MappedFile>> held;
  for (const uint32_t pid : {7, 7}) ASSERT_TRUE(held.emplace_back(copy(pid)).ok()) << held.back().status();
  EXPECT_TRUE(absl::IsUnavailable(copy(7).status())) << copy(7).status();
  for (const uint32_t pid : {8, 8}) ASSERT_TRUE(held.emplace_back(copy(pid)).ok()) << held.back().status();
  EXPECT_TRUE(absl::IsUnavailable(copy(9).status())) << "there is no room for anybody";
  held.clear();
  EXPECT_TRUE(copy(9).ok());
  EXPECT_TRUE(copy(7).ok());
}

TEST_F(FileBrokerTest, AWorkerThatDoesNotAnswerIsGivenUpAndAnotherOneGoesOn) {
  FilePatience patience = kPatient;
  patience.answer_ns = 2 * kSecondNs;  // a worker that waits for a CPU has more
  StartBroker(patience);
  const pid_t first = WorkerPid();
  ASSERT_GT(first, 0);
  ASSERT_EQ(kill(first, SIGSTOP), 0);
  while (!IsStopped(first)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const uint64_t begin_ns = SystemClock().Now().ns;
  const FileAnswer none = broker_->Ask(AboutFile(), -1, "place");
  EXPECT_TRUE(absl::IsUnavailable(none.status)) << none.status;
  EXPECT_EQ(broker_->counters().hung, 1u);
  EXPECT_EQ(notices_.counts().at("files_hung"), 1u);
  // That place rests, and others go on.
  const FileAnswer refused = broker_->Ask(AboutFile(), -1, "place");
  if (SystemClock().Now().ns - begin_ns < patience.answer_ns + HungPlaces::kFirstRestNs) {
    EXPECT_TRUE(absl::IsUnavailable(refused.status)) << refused.status;
    EXPECT_EQ(broker_->counters().refused, 1u);
  }
  EXPECT_TRUE(broker_->Ask(AboutFile(), -1, "another").status.ok());
}

TEST_F(FileBrokerTest, AWorkerThatEndsIsReplaced) {
  const pid_t worker = WorkerPid();
  ASSERT_GT(worker, 0);
  ASSERT_EQ(kill(worker, SIGKILL), 0);
  FileAnswer answer = broker_->Ask(AboutFile(), -1, "place");
  for (int i = 0; i < 100 && !answer.status.ok(); ++i) answer = broker_->Ask(AboutFile(), -1, "place");
  EXPECT_TRUE(answer.status.ok()) << answer.status;
}

TEST_F(FileBrokerTest, ItsProcessesHoldNothingOfOurs) {
  // Before it was forked, as a lock would be. Not what it is asked about: it closes that after it has answered.
  const UniqueFd mine(open((folder_ / "mine").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_TRUE(mine.valid());
  StartBroker(kPatient);
  ASSERT_TRUE(
      broker_->Ask(AboutFile(), -1, "place").status.ok());  // a worker that answers has closed what it was born with
  for (const pid_t pid : {broker_->nursery_pid(), WorkerPid()}) {
    ASSERT_GT(pid, 0);
    int open = 0;
    for (const auto& entry : fs::directory_iterator("/proc/" + std::to_string(pid) + "/fd")) {
      std::error_code closed_meanwhile;
      const fs::path file = fs::read_symlink(entry.path(), closed_meanwhile);
      if (closed_meanwhile) continue;
      EXPECT_NE(file, folder_ / "mine");
      ++open;
    }
    EXPECT_GT(open, 0);
  }
}

TEST_F(FileBrokerTest, ItsProcessesEndWithIt) {
  // By descriptors: a number may be another process's by then, and a process that inherits another may never wait for
  // it.
  std::vector<UniqueFd> processes;
  for (const pid_t pid : {broker_->nursery_pid(), WorkerPid()}) {
    processes.emplace_back(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    ASSERT_TRUE(processes.back().valid()) << pid;
  }
  broker_ = nullptr;
  for (const UniqueFd& process : processes) {
    pollfd ended{process.get(), POLLIN, 0};
    EXPECT_EQ(poll(&ended, 1, kLongMs), 1);
  }
}

TEST_F(FileBrokerTest, FilesOfATargetComeThroughIt) {
  const auto self = static_cast<uint32_t>(getpid());
  const TargetFiles files("/proc", self, nullptr, broker_.get());
  EXPECT_TRUE(files.reachable());
  EXPECT_EQ(files.RootIdentity(), TargetFiles("/proc", self).RootIdentity());
  const auto file = files.OpenImage((folder_ / "file").string());
  ASSERT_TRUE(file.ok()) << file.status();
  std::array<std::byte, 16> bytes;
  EXPECT_EQ(file->ReadAt(0, bytes).value_or(0), 7u);
  EXPECT_TRUE(files.HasOpenFile(file->status.st_dev, file->status.st_ino) || file->may_wait);
  const auto maps = files.ReadProc("maps", 64 << 20);
  ASSERT_TRUE(maps.ok());
  EXPECT_NE(maps->find("[stack]"), std::string::npos);
}

TEST(FileQuestionTest, BytesComeBack) {
  FileQuestion question{
      .kind = FileQuestionKind::kMapping, .proc_root = "/proc", .pid = 7, .owner = 1000, .path = "/a b"};
  question.start = 1;
  question.inode = uint64_t{1} << 60;
  question.descriptor = -1;
  const auto back = ParseFileQuestion(FileQuestionBytes(question));
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(FileQuestionBytes(*back), FileQuestionBytes(question));
  const std::string bytes = FileQuestionBytes(question);
  for (size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(ParseFileQuestion(bytes.substr(0, size)).has_value());
  FileAnswer answer;
  answer.status = absl::NotFoundError("/a");
  answer.text = "t";
  answer.on_fuse = true;
  const auto answer_back = ParseFileAnswer(FileAnswerBytes(answer));
  ASSERT_TRUE(answer_back.has_value());
  EXPECT_EQ(answer_back->status, answer.status);
  EXPECT_TRUE(answer_back->on_fuse);
  EXPECT_FALSE(answer_back->may_wait);
}

}  // namespace
}  // namespace clrsampler
