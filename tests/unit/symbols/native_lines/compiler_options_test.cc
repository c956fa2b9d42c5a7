#include "symbols/native_lines/compiler_options.h"

#include <gtest/gtest.h>

namespace clrsampler {
namespace {

// As compilers of Debian 12 write them.
TEST(CompilerOptionsTest, GccTellsThatItDidNotOptimise) {
  EXPECT_TRUE(SaysNotOptimised("GNU C17 12.2.0 -mtune=generic -march=x86-64 -g -O0"));
  EXPECT_TRUE(SaysNotOptimised("GNU C++17 12.2.0 -mtune=generic -march=x86-64 -g -std=c++17"));
  EXPECT_TRUE(SaysNotOptimised("GNU C17 12.2.0 -mtune=generic -march=x86-64 -g -O2 -O0")) << "the last one counts";
}

TEST(CompilerOptionsTest, WhatIsOptimisedOrDoesNotSayIsNotExact) {
  for (const char* producer :
       {"GNU C17 12.2.0 -mtune=generic -march=x86-64 -g -O2", "GNU C17 12.2.0 -mtune=generic -march=x86-64 -g -Og",
        "GNU C17 12.2.0 -mtune=generic -march=x86-64 -g -O", "GNU C17 12.2.0", "GNU AS 2.40 -march=x86-64",
        "GNU GIMPLE 12.2.0 -mtune=generic -march=x86-64 -g", "Debian clang version 14.0.6", "",
        "clang LLVM (rustc version 1.63.0)"}) {
    EXPECT_FALSE(SaysNotOptimised(producer)) << producer;
  }
}

}  // namespace
}  // namespace clrsampler
