#include "clr/inprocess/library_place.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "clr/inprocess/shared_ring.h"
#include "clrsampler/inprocess_ring.h"

namespace clrsampler {
namespace {

namespace fs = std::filesystem;

// This process is the target: its root is ours.
class LibraryPlaceTest : public testing::Test {
 protected:
  LibraryPlaceTest() : files_("/proc", static_cast<uint32_t>(getpid())) {
    char name[] = "/tmp/library_place_XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~LibraryPlaceTest() override { fs::remove_all(folder_); }

  TargetFiles files_;
  std::string folder_;
};

TEST_F(LibraryPlaceTest, OthersMayReadItAndChangeNothing) {
  const mode_t mask = umask(077);
  const absl::StatusOr<LibraryPlace> place = LibraryPlace::Make(files_, folder_, "content");
  umask(mask);
  ASSERT_TRUE(place.ok()) << place.status();
  EXPECT_EQ(place->library_path().rfind(folder_ + "/clrsampler-", 0), 0u) << place->library_path();
  std::ifstream library(place->library_path());
  std::string text;
  EXPECT_TRUE(library >> text);
  EXPECT_EQ(text, "content");
  struct stat status {};
  ASSERT_EQ(stat(place->library_path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0644u);
  ASSERT_EQ(stat(fs::path(place->library_path()).parent_path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0711u);
}

TEST_F(LibraryPlaceTest, ItsSocketListens) {
  const absl::StatusOr<LibraryPlace> place = LibraryPlace::Make(files_, folder_, "");
  ASSERT_TRUE(place.ok()) << place.status();
  const UniqueFd client(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(place->socket_path().size(), sizeof address.sun_path);
  std::memcpy(address.sun_path, place->socket_path().c_str(), place->socket_path().size());
  EXPECT_EQ(connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  const UniqueFd accepted(accept(place->listener().get(), nullptr, nullptr));
  EXPECT_TRUE(accepted.valid());
}

TEST_F(LibraryPlaceTest, NothingIsLeftOfIt) {
  {
    absl::StatusOr<LibraryPlace> place = LibraryPlace::Make(files_, folder_, "");
    ASSERT_TRUE(place.ok()) << place.status();
    EXPECT_FALSE(fs::is_empty(folder_));
    place->Remove();
    EXPECT_TRUE(fs::is_empty(folder_));
  }
  { EXPECT_TRUE(LibraryPlace::Make(files_, folder_, "").ok()); }
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(LibraryPlaceTest, AFolderThatOthersChangeIsNotUsed) {
  ASSERT_EQ(chmod(folder_.c_str(), 0777), 0);
  const absl::StatusOr<LibraryPlace> elsewhere = LibraryPlace::Make(files_, folder_, "");
  if (elsewhere.ok()) {
    EXPECT_NE(elsewhere->library_path().rfind(folder_, 0), 0u) << elsewhere->library_path();
  }
  EXPECT_TRUE(fs::is_empty(folder_));
  ASSERT_EQ(chmod(folder_.c_str(), 01777), 0);
  const absl::StatusOr<LibraryPlace> sticky = LibraryPlace::Make(files_, folder_, "");
  ASSERT_TRUE(sticky.ok()) << sticky.status();
  EXPECT_EQ(sticky->library_path().rfind(folder_, 0), 0u);
}

TEST_F(LibraryPlaceTest, AFolderBelowOneThatOthersChangeIsNotUsed) {
  const std::string inner = folder_ + "/inner";
  ASSERT_TRUE(fs::create_directory(inner));
  const auto is_used = [&](const std::string& path) {
    const absl::StatusOr<LibraryPlace> place = LibraryPlace::Make(files_, path, "");
    return place.ok() && place->library_path().rfind(path + "/", 0) == 0;
  };
  EXPECT_TRUE(is_used(inner));
  ASSERT_EQ(chmod(folder_.c_str(), 0777), 0);
  EXPECT_FALSE(is_used(inner));
  ASSERT_EQ(chmod(folder_.c_str(), 01777), 0);
  EXPECT_TRUE(is_used(inner));
  fs::create_directory_symlink(inner, folder_ + "/link");
  EXPECT_FALSE(is_used(folder_ + "/link"));
  EXPECT_FALSE(is_used(inner + "/../inner"));
}

TEST_F(LibraryPlaceTest, AFolderWhoseNameIsNoAsciiIsNotUsed) {
  const std::string odd = folder_ + "/\xc3\xb6";
  ASSERT_TRUE(fs::create_directory(odd));
  const absl::StatusOr<LibraryPlace> place = LibraryPlace::Make(files_, odd, "");
  EXPECT_TRUE(fs::is_empty(odd)) << place.status();
}

TEST(LibraryPlaceGoneTest, AProcessThatIsGoneHasNone) {
  const TargetFiles files("/proc", (1 << 22) + 1);
  EXPECT_TRUE(absl::IsFailedPrecondition(LibraryPlace::Make(files, "", "").status()));
}

TEST(SharedRingTest, ItsPagesAreThereBeforeItIsHandedOver) {
  const absl::StatusOr<SharedRing> ring = SharedRing::Create(kMinInprocessCapacity);
  ASSERT_TRUE(ring.ok()) << ring.status();
  struct stat status {};
  ASSERT_EQ(fstat(ring->file().get(), &status), 0);
  EXPECT_GE(static_cast<uint64_t>(status.st_blocks) * 512, ring->memory().size());
}

TEST(SharedRingTest, NobodyMakesItSmaller) {
  const absl::StatusOr<SharedRing> ring = SharedRing::Create(kMinInprocessCapacity);
  ASSERT_TRUE(ring.ok()) << ring.status();
  EXPECT_EQ(ring->memory().size(), kInprocessHeaderBytes + kMinInprocessCapacity);
  EXPECT_NE(ftruncate(ring->file().get(), 4096), 0);
  EXPECT_NE(ftruncate(ring->file().get(), 1 << 24), 0);
}

}  // namespace
}  // namespace clrsampler
