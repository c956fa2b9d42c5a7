#include "os/secret_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "status/status.h"

namespace clrsampler {
namespace {

class SecretFileTest : public ::testing::Test {
 protected:
  SecretFileTest() {
    std::string folder = ::testing::TempDir() + "secret_file_XXXXXX";
    folder_ = mkdtemp(folder.data());
    path_ = folder_ + "/secret";
    std::ofstream(path_) << "secret\n";
  }
  ~SecretFileTest() override { std::filesystem::remove_all(folder_); }
  absl::StatusOr<std::string> Read(mode_t mode) {
    EXPECT_EQ(chmod(path_.c_str(), mode), 0);
    return ReadSecretFile(path_, 100);
  }
  std::string folder_, path_;
};

TEST_F(SecretFileTest, OfItsOwnerAndItsGroup) {
  EXPECT_EQ(*Read(0600), "secret\n");
  EXPECT_EQ(*Read(0640), "secret\n");
  EXPECT_EQ(*Read(0400), "secret\n");
}

TEST_F(SecretFileTest, WhatOthersMayOpenOrChangeIsNone) {
  for (const mode_t mode : {0644, 0604, 0602, 0601, 0660, 0666}) {
    const absl::Status status = Read(mode).status();
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << mode;
    EXPECT_THAT(HintOf(status), ::testing::HasSubstr("chmod 0600 " + path_));
  }
}

TEST_F(SecretFileTest, OtherThingsAreNoFiles) {
  EXPECT_TRUE(absl::IsNotFound(ReadSecretFile(path_ + ".none", 100).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ReadSecretFile(::testing::TempDir(), 100).status()));
  EXPECT_FALSE(ReadSecretFile(path_, 3).ok()) << "too large";
  ASSERT_EQ(std::remove(path_.c_str()), 0);
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_TRUE(absl::IsInvalidArgument(ReadSecretFile(path_, 100).status())) << "and nobody waits";
}

}  // namespace
}  // namespace clrsampler
