#include "cli/line_output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "os/unique_fd.h"

namespace clrsampler {
namespace {

class LineOutputTest : public testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    read_ = UniqueFd(ends[0]);
    write_ = UniqueFd(ends[1]);
    ASSERT_GT(fcntl(write_.get(), F_SETPIPE_SZ, 4096), 0);
  }
  std::string ReadAll() {
    std::string all, part(65536, '\0');
    for (ssize_t got; (got = read(read_.get(), part.data(), part.size())) > 0;)
      all.append(part, 0, static_cast<size_t>(got));
    return all;
  }
  UniqueFd read_, write_;
};

TEST_F(LineOutputTest, WhatIsReadComesAtOnce) {
  LineOutput output(write_.get());
  output.Print("one");
  std::string got(64, '\0');
  got.resize(static_cast<size_t>(read(read_.get(), got.data(), got.size())));
  EXPECT_EQ(got, "one\n");
}

TEST_F(LineOutputTest, AReaderThatDoesNotReadHoldsNobodyUpAndMissesNothing) {
  LineOutput output(write_.get());
  std::string expected;
  for (int i = 0; i < 2000; ++i) {
    const std::string line = std::to_string(i) + std::string(100, '.');
    output.Print(line);
    expected += line + "\n";
  }
  std::string got;
  std::thread reader([&] { got = ReadAll(); });
  EXPECT_TRUE(output.Finish().ok());
  write_.reset();
  reader.join();
  EXPECT_EQ(got, expected);
  EXPECT_EQ(output.left_out(), 0u);
}

TEST_F(LineOutputTest, WhatGoesPastTheLimitIsCounted) {
  LineOutput output(write_.get(), 10'000);
  for (int i = 0; i < 2000; ++i) output.Print(std::string(99, '.'));
  // 4 KB are in the pipe.
  EXPECT_GE(output.left_out(), 1840u);
  EXPECT_LE(output.left_out(), 1900u);
}

TEST_F(LineOutputTest, ADescriptorThatCantBeWrittenIsAnError) {
  const UniqueFd full(open("/dev/full", O_WRONLY | O_CLOEXEC));
  LineOutput nowhere(full.get());
  nowhere.Print("one");
  EXPECT_FALSE(nowhere.Finish().ok());
}

}  // namespace
}  // namespace clrsampler
