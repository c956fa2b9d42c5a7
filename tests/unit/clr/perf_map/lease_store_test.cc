#include "clr/perf_map/lease_store.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace clrsampler {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

LeaseRecord Record(uint32_t tgid = 42) {
  LeaseRecord record;
  record.agent_pid = 100;
  record.agent_start_ticks = 200;
  record.boot_id = "b-o-o-t";
  record.agent_pid_namespace = 4026531836;
  record.target = {tgid, 7, 12345};
  record.pid_namespace = 1;
  record.mount_namespace = 2;
  record.root_device = 3;
  record.root_inode = 4;
  record.owner_uid = 1000;
  record.created_realtime_ns = 1'700'000'000'000'000'000;
  record.directory = "/tmp/with blank";
  return record;
}

TEST(LeaseRecordTest, IsReadAsItWasWritten) {
  LeaseRecord record = Record();
  record.files = {{"perf-7.map", 5, 6}, {"perfinfo-7.map", 5, 8}};
  const auto read = ParseLeaseRecord(EncodeLeaseRecord(record));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(EncodeLeaseRecord(*read), EncodeLeaseRecord(record));
  EXPECT_EQ(read->target.tgid, 42u);
  EXPECT_EQ(read->target.namespace_pid, 7u);
  EXPECT_EQ(read->directory, "/tmp/with blank");
  EXPECT_EQ(read->files, record.files);
}

TEST(LeaseRecordTest, ALineWithoutItsEndIsLeftOut) {
  const std::string text = EncodeLeaseRecord(Record()) + EncodeLeasedFile({"perf-7.map", 5, 6});
  for (size_t cut = 1; cut <= EncodeLeasedFile({"perf-7.map", 5, 6}).size(); ++cut) {
    const auto read = ParseLeaseRecord(absl::string_view(text).substr(0, text.size() - cut));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_THAT(read->files, IsEmpty());
  }
}

TEST(LeaseRecordTest, AnyMissingLineIsAnError) {
  const std::string whole = EncodeLeaseRecord(Record());
  for (size_t begin = 0; begin < whole.size(); begin = whole.find('\n', begin) + 1) {
    std::string text = whole;
    text.erase(begin, whole.find('\n', begin) + 1 - begin);
    EXPECT_FALSE(ParseLeaseRecord(text).ok()) << text;
  }
}

// A record says what root shall remove.
TEST(LeaseRecordTest, OnlyMapsOfThatProcessCanBeNamed) {
  for (const char* name : {"passwd", "../perf-7.map", "perf-8.map", "perf-7.map/x", "jit-7.dump"}) {
    EXPECT_FALSE(ParseLeaseRecord(EncodeLeaseRecord(Record()) + EncodeLeasedFile({name, 5, 6})).ok()) << name;
  }
  LeaseRecord record = Record();
  record.directory = "tmp";
  EXPECT_FALSE(ParseLeaseRecord(EncodeLeaseRecord(record)).ok());
}

class LeaseStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/clrsampler-leases-XXXXXX";
    top_ = mkdtemp(pattern.data());
    directory_ = top_ + "/run/leases";
  }
  void TearDown() override { fs::remove_all(top_); }
  LeaseStore Open() {
    auto store = LeaseStore::Open(directory_, true);
    EXPECT_TRUE(store.ok()) << store.status();
    return *std::move(store);
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory_)) names.push_back(entry.path().filename());
    return names;
  }

  std::string top_;
  std::string directory_;
};

TEST_F(LeaseStoreTest, MakesADirectoryForItselfAlone) {
  EXPECT_TRUE(absl::IsNotFound(LeaseStore::Open(directory_, false).status()));
  Open();
  struct stat status {};
  ASSERT_EQ(stat(directory_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700u);
}

TEST_F(LeaseStoreTest, ADirectoryThatOthersCanWriteToIsRefused) {
  Open();
  chmod(directory_.c_str(), 0770);
  EXPECT_TRUE(absl::IsPermissionDenied(LeaseStore::Open(directory_, true).status()));
  chmod(directory_.c_str(), 0700);
  fs::rename(directory_, top_ + "/elsewhere");
  fs::create_directory_symlink(top_ + "/elsewhere", directory_);
  EXPECT_FALSE(LeaseStore::Open(directory_, true).ok());
}

TEST_F(LeaseStoreTest, ALivingOwnersLeaseIsNotTakenAndKeepsOthersOut) {
  LeaseStore store = Open();
  LeaseStore other = Open();
  {
    const auto lease = store.Create(Record());
    ASSERT_TRUE(lease.ok()) << lease.status();
    EXPECT_THAT(Names(), ElementsAre("42-12345.lease"));
    EXPECT_THAT(other.TakeDead(), IsEmpty());
    EXPECT_TRUE(absl::IsAlreadyExists(other.Create(Record()).status()));
    EXPECT_TRUE(other.Create(Record(43)).ok());
    EXPECT_EQ(other.CountOf(100, 200), 2u);
    EXPECT_EQ(other.CountOf(100, 201), 0u);
  }
  EXPECT_THAT(other.TakeDead(), SizeIs(2));  // dropped without Remove, as a death would
}

TEST_F(LeaseStoreTest, WhatIsRemovedIsGone) {
  LeaseStore store = Open();
  auto lease = store.Create(Record());
  ASSERT_TRUE(lease.ok());
  lease->Remove();
  EXPECT_THAT(Names(), IsEmpty());
  EXPECT_TRUE(store.Create(Record()).ok());
}

TEST_F(LeaseStoreTest, FilesThatWereAddedAreOnDisk) {
  LeaseStore store = Open();
  {
    auto lease = store.Create(Record());
    ASSERT_TRUE(lease.ok() && lease->AddFile({"perf-7.map", 5, 6}).ok());
  }
  std::vector<Lease> dead = store.TakeDead();
  ASSERT_THAT(dead, SizeIs(1));
  EXPECT_THAT(dead[0].record().files, ElementsAre(LeasedFile{"perf-7.map", 5, 6}));
  // The process that took it may go on with it.
  ASSERT_TRUE(dead[0].AddFile({"perfinfo-7.map", 5, 8}).ok());
  dead.clear();
  EXPECT_THAT(store.TakeDead()[0].record().files, SizeIs(2));
}

TEST_F(LeaseStoreTest, OnlyOneRepairerGetsALease) {
  LeaseStore store = Open();
  LeaseStore other = Open();
  (void)store.Create(Record());
  const std::vector<Lease> mine = store.TakeDead();
  EXPECT_THAT(mine, SizeIs(1));
  EXPECT_THAT(other.TakeDead(), IsEmpty());
}

TEST_F(LeaseStoreTest, WhatADeadWriterDidNotFinishIsRemoved) {
  LeaseStore store = Open();
  std::ofstream(directory_ + "/.unfinished-9-42-12345.lease") << EncodeLeaseRecord(Record());
  std::ofstream(directory_ + "/77-1.lease") << "half";
  EXPECT_THAT(store.TakeDead(), IsEmpty());
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(LeaseStoreTest, TheLockDiesWithItsProcess) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  LeaseStore store = Open();
  const pid_t owner = fork();
  if (owner == 0) {
    auto lease = store.Create(Record());
    (void)!write(ends[1], lease.ok() ? "y" : "n", 1);
    pause();
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(read(ends[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'y');
  EXPECT_THAT(store.TakeDead(), IsEmpty());
  kill(owner, SIGKILL);
  waitpid(owner, nullptr, 0);
  EXPECT_THAT(store.TakeDead(), SizeIs(1));
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace clrsampler
