// Finds which file a history takes, and what it does with those that are not its own; versions of its tables.
#include "store/history_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "status/status.h"
#include "store/history.h"
#include "store/history_schema.h"
#include "unit/store/made_up_host.h"
#include "unit/store/store_folder.h"

namespace clrsampler {
namespace {

using test_support::MadeUpHost;
using test_support::StoreFolder;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kVersion = 3;  // that this program writes

std::string ContentOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

mode_t ModeOf(const std::string& path) {
  struct stat info {};
  EXPECT_EQ(lstat(path.c_str(), &info), 0) << path;
  return info.st_mode & 0777;
}

TEST(HistoryFileTest, NobodyElseMayReadIt) {
  StoreFolder folder;
  const mode_t before = umask(0);
  {
    const auto history = folder.Open();
    ASSERT_TRUE(history->Append(MadeUpHost({}).Next()).ok());
    for (const char* end : {"", "-wal", "-shm", ".lock"}) EXPECT_EQ(ModeOf(folder.path() + end), 0600u) << end;
  }
  chmod(folder.path().c_str(), 0666);
  const auto again = folder.Open();
  umask(before);
  EXPECT_EQ(ModeOf(folder.path()), 0600u);
}

TEST(HistoryFileTest, LinksAndStrangersFilesAreLeftAlone) {
  StoreFolder folder;
  const std::string other = folder.folder() + "/other";
  for (const std::string& content : {std::string("somebody's text, longer than a header of 100 bytes "
                                                 "..................................................."),
                                     std::string("short")}) {
    std::ofstream(folder.path(), std::ios::binary) << content;
    absl::Status status = folder.TryOpen().status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr("is no history of clrsampler"));
    EXPECT_FALSE(HintOf(status).empty());
    EXPECT_EQ(ContentOf(folder.path()), content);
    std::filesystem::remove(folder.path());
  }

  ASSERT_EQ(symlink(other.c_str(), folder.path().c_str()), 0);
  EXPECT_THAT(folder.TryOpen().status().message(), HasSubstr("is a symbolic link"));
  EXPECT_FALSE(std::filesystem::exists(other));
  std::filesystem::remove(folder.path());

  ASSERT_EQ(mkfifo(folder.path().c_str(), 0600), 0);
  EXPECT_THAT(folder.TryOpen().status().message(), HasSubstr("is not a file"));
  std::filesystem::remove(folder.path());

  // Where the log will be.
  std::ofstream(other) << "precious";
  ASSERT_EQ(symlink(other.c_str(), (folder.path() + "-wal").c_str()), 0);
  const auto history = folder.TryOpen();
  if (history.ok()) {
    EXPECT_TRUE((*history)->Append(MadeUpHost({}).Next()).ok());
  }
  EXPECT_EQ(ContentOf(other), "precious");
  EXPECT_THAT(folder.said, IsEmpty());
}

TEST(HistoryFileTest, ALogThatIsALinkIsNotFollowed) {
  StoreFolder folder;
  const std::string other = folder.folder() + "/other";
  (void)folder.Open();
  std::ofstream(other) << "precious";
  std::filesystem::remove(folder.path() + "-wal");
  ASSERT_EQ(symlink(other.c_str(), (folder.path() + "-wal").c_str()), 0);
  const auto history = folder.TryOpen();
  EXPECT_FALSE(history.ok() && (*history)->Append(MadeUpHost({}).Next()).ok());
  EXPECT_EQ(ContentOf(other), "precious");
}

TEST(HistoryFileTest, AnotherDatabaseIsNotTaken) {
  StoreFolder folder;
  {
    absl::StatusOr<SqliteConnection> connection =
        SqliteConnection::Open(folder.path(), SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    ASSERT_TRUE(connection->Execute("CREATE TABLE orders(id INTEGER)").ok());
  }
  EXPECT_TRUE(absl::IsFailedPrecondition(folder.TryOpen().status()));
}

TEST(HistoryFileTest, OneProcessAtATime) {
  StoreFolder folder;
  const auto history = folder.Open();
  const absl::Status second = folder.TryOpen().status();
  EXPECT_TRUE(absl::IsAborted(second));
  EXPECT_THAT(second.message(), HasSubstr("another process writes"));
}

TEST(HistoryFileTest, AFolderThatIsMissingIsSaid) {
  StoreFolder folder;
  const absl::Status status = History::Open(folder.folder() + "/no/history.db", {}, [](const std::string&) {}).status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(HintOf(status), HasSubstr("folder"));
}

TEST(HistoryFileTest, ZerosAreADamagedHistory) {
  StoreFolder folder;
  std::ofstream(folder.path(), std::ios::binary) << std::string(8192, '\0');
  const auto history = folder.Open();
  ASSERT_NE(history, nullptr);
  ASSERT_THAT(folder.said, SizeIs(1));
  EXPECT_THAT(folder.said[0], HasSubstr("is set aside as"));
  EXPECT_TRUE(history->Append(MadeUpHost({}).Next()).ok());
}

TEST(HistoryFileTest, OneDamagedFileIsKept) {
  StoreFolder folder;
  for (int i = 0; i < 3; ++i) {
    std::filesystem::remove(folder.path() + "-wal");
    std::ofstream(folder.path(), std::ios::binary) << std::string(8192, '\0');
    (void)folder.Open();
  }
  size_t aside = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.folder())) {
    aside += entry.path().string().find(".damaged-") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(aside, 1u);
  EXPECT_THAT(folder.said, SizeIs(3));
}

TEST(HistorySchemaTest, ANewerVersionIsRefusedAndLeftAlone) {
  StoreFolder folder;
  (void)folder.Open();
  ASSERT_TRUE(SqliteConnection::Open(folder.path(), SQLITE_OPEN_READWRITE)->Execute("PRAGMA user_version = 9").ok());
  const absl::Status status = folder.TryOpen().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(status.message(), HasSubstr("version 9"));
  EXPECT_THAT(folder.said, IsEmpty());
}

TEST(HistorySchemaTest, AnOlderVersionIsBroughtUpToDateWithWhatIsInIt) {
  StoreFolder folder;
  {
    const auto history = folder.Open();
    ASSERT_TRUE(history->Append(MadeUpHost({}).Next()).ok());
  }
  absl::StatusOr<SqliteConnection> connection = SqliteConnection::Open(folder.path(), SQLITE_OPEN_READWRITE);
  ASSERT_EQ(*connection->Number("PRAGMA user_version"), kVersion);
  // A version to come: its last step fails at first, as on a disk that is full.
  std::vector<absl::string_view> steps(HistoryMigrations().begin(), HistoryMigrations().end());
  steps.push_back("ALTER TABLE entry ADD COLUMN note TEXT; UPDATE entry SET note = 'old'");
  steps.push_back("CREATE TABLE more(id INTEGER PRIMARY KEY); INSERT INTO no_such_table VALUES(1)");
  EXPECT_FALSE(Migrate(*connection, steps).ok());
  EXPECT_EQ(*connection->Number("PRAGMA user_version"), kVersion + 1) << "the step that failed is not half there";
  EXPECT_EQ(*connection->Number("SELECT count(*) FROM sqlite_schema WHERE name = 'more'"), 0);
  steps.back() = "CREATE TABLE more(id INTEGER PRIMARY KEY)";
  EXPECT_TRUE(Migrate(*connection, steps).ok());
  EXPECT_EQ(*connection->Number("PRAGMA user_version"), kVersion + 2);
  EXPECT_EQ(*connection->Number("SELECT count(*) FROM entry WHERE note = 'old'"), 1);
  EXPECT_TRUE(absl::IsFailedPrecondition(Migrate(*connection))) << "which this program does not know";
}

TEST(HistorySchemaTest, AFileOfVersion1IsGoneOnWith) {
  StoreFolder folder;
  MadeUpHost host({});
  {
    const auto history = folder.Open();
    ASSERT_TRUE(history->Append(host.Next()).ok());
    ASSERT_TRUE(history->Append(host.Next()).ok());
  }
  {
    absl::StatusOr<SqliteConnection> connection = SqliteConnection::Open(folder.path(), SQLITE_OPEN_READWRITE);
    ASSERT_TRUE(connection
                    ->Execute("DROP INDEX entry_begin; ALTER TABLE entry RENAME COLUMN segment TO chapter;"
                              "ALTER TABLE entry RENAME TO record; CREATE INDEX record_begin ON record(begin_ns);"
                              "PRAGMA user_version = 1")
                    .ok());
  }
  const auto history = folder.Open();
  ASSERT_NE(history, nullptr);
  EXPECT_THAT(folder.said, IsEmpty()) << "nothing was set aside";
  ASSERT_TRUE(history->Append(host.Next()).ok());
  const absl::StatusOr<HistorySpan> span = history->Span();
  ASSERT_TRUE(span.ok()) << span.status();
  EXPECT_EQ(span->windows, 3u);
}

TEST(HistorySchemaTest, AFileThatHasNoTablesYetGetsThem) {
  StoreFolder folder;
  {
    absl::StatusOr<SqliteConnection> connection =
        SqliteConnection::Open(folder.path(), SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    ASSERT_TRUE(connection->Execute(absl::StrCat("PRAGMA application_id = ", kHistoryApplicationId)).ok());
    ASSERT_EQ(*connection->Number("PRAGMA user_version"), 0);
  }
  const auto history = folder.Open();
  ASSERT_NE(history, nullptr);
  EXPECT_THAT(folder.said, IsEmpty());
  EXPECT_TRUE(history->Append(MadeUpHost({}).Next()).ok());
}

TEST(HistorySchemaTest, OtherTablesThanOursAreDamage) {
  StoreFolder folder;
  (void)folder.Open();
  ASSERT_TRUE(SqliteConnection::Open(folder.path(), SQLITE_OPEN_READWRITE)
                  ->Execute("CREATE TRIGGER t AFTER INSERT ON entry BEGIN DELETE FROM part; END")
                  .ok());
  const auto history = folder.Open();
  ASSERT_NE(history, nullptr);
  EXPECT_THAT(folder.said, SizeIs(1));
}

}  // namespace
}  // namespace clrsampler
