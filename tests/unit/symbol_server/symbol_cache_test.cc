#include "symbol_server/symbol_cache.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit/symbol_server/temporary_folder.h"

namespace clrsampler {
namespace {

using testing::UnorderedElementsAre;

SymbolFileKey Key(char digit) { return {SymbolFileKind::kElfDebug, std::string(40, digit), 0, "a.so"}; }

class SymbolCacheTest : public testing::Test {
 protected:
  SymbolCache Open(uint64_t max_bytes = 1 << 20) {
    SymbolCache::Options options;
    options.max_bytes = max_bytes;
    options.now = [this] { return now_; };
    auto cache = SymbolCache::Open(folder_.path() + "/below/symbols", options);
    EXPECT_TRUE(cache.ok()) << cache.status();
    return *std::move(cache);
  }
  void Store(SymbolCache& cache, char digit, size_t bytes) {
    const auto file = cache.BeginFile(getpid());
    ASSERT_TRUE(file.ok());
    EXPECT_TRUE(WriteAll(file->get(), std::string(bytes, digit)).ok());
    EXPECT_TRUE(cache.Adopt(getpid(), Key(digit)).ok());
  }

  TemporaryFolder folder_;
  int64_t now_ = 1'700'000'000;
};

TEST_F(SymbolCacheTest, KeepsWhatItWasGivenForTheNextRun) {
  {
    SymbolCache cache = Open();
    EXPECT_FALSE(cache.Find(Key('a')).has_value());
    Store(cache, 'a', 100);
  }
  SymbolCache cache = Open();
  const auto fd = cache.Find(Key('a'));
  ASSERT_TRUE(fd.has_value());
  EXPECT_EQ(*ReadWholeFile(fd->get(), 1000), std::string(100, 'a'));
  cache.Discard(Key('a'));
  EXPECT_FALSE(cache.Find(Key('a')).has_value());
  struct stat status {};
  ASSERT_EQ(stat((folder_.path() + "/below/symbols").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
}

TEST_F(SymbolCacheTest, WhatWasNotUsedForLongestGoesFirst) {
  SymbolCache cache = Open(1000);
  for (const char digit : {'a', 'b', 'c'}) {
    now_ += 10;
    Store(cache, digit, 300);
  }
  now_ += 10;
  EXPECT_TRUE(cache.Find(Key('a')).has_value());  // used again: now the youngest
  now_ += 10;
  Store(cache, 'd', 300);
  EXPECT_TRUE(cache.Find(Key('a')).has_value());
  EXPECT_FALSE(cache.Find(Key('b')).has_value());
  EXPECT_TRUE(cache.Find(Key('c')).has_value());
  EXPECT_TRUE(cache.Find(Key('d')).has_value());
}

TEST_F(SymbolCacheTest, FilesOfEachKindMakeRoomForOthers) {
  for (const SymbolFileKind kind : kSymbolFileKinds) {
    SymbolCache cache = Open(1000);
    SymbolFileKey key = Key('e');
    key.kind = kind;
    now_ += 10;
    const auto file = cache.BeginFile(getpid());
    ASSERT_TRUE(file.ok());
    EXPECT_TRUE(WriteAll(file->get(), std::string(600, 'x')).ok());
    EXPECT_TRUE(cache.Adopt(getpid(), key).ok());
    EXPECT_TRUE(cache.Find(key).has_value());
    now_ += 10;
    Store(cache, 'f', 600);
    EXPECT_FALSE(cache.Find(key).has_value()) << CacheFileName(key);
    EXPECT_TRUE(cache.Find(Key('f')).has_value());
  }
}

TEST_F(SymbolCacheTest, FilesOfOthersAreNeitherCountedNorDeleted) {
  SymbolCache cache = Open(1000);
  TemporaryFolder other;
  const std::string stranger = folder_.path() + "/below/symbols/notes.txt";
  { std::ofstream(stranger) << std::string(5000, 'x'); }
  Store(cache, 'a', 900);
  EXPECT_TRUE(cache.Find(Key('a')).has_value());
  EXPECT_TRUE(std::filesystem::exists(stranger));
}

TEST_F(SymbolCacheTest, MissingFilesAreAskedForAgainAfterADayOrOfOtherServers) {
  SymbolCache cache = Open();
  const std::vector<SymbolServerUrl> one = {{"https://one", true, true}}, two = {{"https://two", true, true}};
  const uint64_t at_one = SymbolCache::NumberOf(one), at_two = SymbolCache::NumberOf(two);
  EXPECT_NE(at_one, at_two);
  cache.NoteMissing(Key('a'), at_one);
  EXPECT_TRUE(cache.IsMissing(Key('a'), at_one));
  EXPECT_FALSE(cache.IsMissing(Key('a'), at_two));
  EXPECT_FALSE(cache.IsMissing(Key('b'), at_one));
  now_ += 24 * 60 * 60 - 1;
  EXPECT_TRUE(cache.IsMissing(Key('a'), at_one));
  now_ += 1;
  EXPECT_FALSE(cache.IsMissing(Key('a'), at_one));
  cache.Evict();
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path() + "/below/symbols"));
  cache.NoteMissing(Key('a'), at_one);
  now_ -= 100'000;  // a clock that was set back must not make it hold for ever
  EXPECT_FALSE(cache.IsMissing(Key('a'), at_one));
}

TEST_F(SymbolCacheTest, FilesOfRunsThatDiedAreDeletedWhenTheyAreOld) {
  SymbolCache cache = Open();
  const auto mine = cache.BeginFile(11);
  const auto dead = cache.BeginFile(12);
  ASSERT_TRUE(mine.ok() && dead.ok());
  struct timespec old[2] = {{0, UTIME_OMIT}, {static_cast<time_t>(now_ - 90'000), 0}};
  struct timespec young[2] = {{0, UTIME_OMIT}, {static_cast<time_t>(now_ - 10), 0}};
  futimens(dead->get(), old);
  futimens(mine->get(), young);
  cache.Evict();
  EXPECT_FALSE(cache.OpenReceived(12).ok());
  EXPECT_TRUE(std::filesystem::exists(folder_.path() + "/below/symbols/work-11"));
  cache.DropFile(11);
  EXPECT_FALSE(std::filesystem::exists(folder_.path() + "/below/symbols/work-11"));
}

TEST_F(SymbolCacheTest, WhatSomebodyMayStillWriteToIsNotOpened) {
  SymbolCache cache = Open();
  auto file = cache.BeginFile(11);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(WriteAll(file->get(), "content").ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(cache.OpenReceived(11).status()));
  void* map = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file->get(), 0);
  file->reset();
  EXPECT_TRUE(absl::IsFailedPrecondition(cache.OpenReceived(11).status())) << "a mapping is enough";
  munmap(map, 4096);
  EXPECT_TRUE(cache.OpenReceived(11).ok());
}

TEST_F(SymbolCacheTest, AFolderThatOthersMayWriteToIsRefused) {
  const std::string path = folder_.path() + "/shared";
  ASSERT_EQ(mkdir(path.c_str(), 0700), 0);
  ASSERT_EQ(chmod(path.c_str(), 0777), 0);
  EXPECT_TRUE(absl::IsPermissionDenied(SymbolCache::Open(path, {}).status()));
  ASSERT_EQ(chmod(path.c_str(), 0700), 0);
  EXPECT_TRUE(SymbolCache::Open(path, {}).ok());
  if (geteuid() == 0) {
    ASSERT_EQ(chown(path.c_str(), 65534, 65534), 0);
    EXPECT_TRUE(absl::IsPermissionDenied(SymbolCache::Open(path, {}).status()));
  }
  EXPECT_FALSE(SymbolCache::Open("", {}).ok());
}

// A link or FIFO of the right name, planted by the folder's owner at most, is not opened.
TEST_F(SymbolCacheTest, OnlyRegularFilesAreFiles) {
  SymbolCache cache = Open();
  const std::string folder = folder_.path() + "/below/symbols/";
  ASSERT_EQ(symlink("/etc/passwd", (folder + CacheFileName(Key('a'))).c_str()), 0);
  ASSERT_EQ(mkfifo((folder + CacheFileName(Key('b'))).c_str(), 0600), 0);
  EXPECT_FALSE(cache.Find(Key('a')).has_value());
  EXPECT_FALSE(cache.Find(Key('b')).has_value());
}

}  // namespace
}  // namespace clrsampler
