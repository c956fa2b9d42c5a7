// A folder for one test's store, and what was said about it.
#ifndef CLRSAMPLER_TESTS_UNIT_STORE_STORE_FOLDER_H_
#define CLRSAMPLER_TESTS_UNIT_STORE_STORE_FOLDER_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "store/history.h"

namespace clrsampler::test_support {

class StoreFolder {
 public:
  StoreFolder() {
    // In memory where that is possible: a busy disk takes longer for what SQLite flushes than the tests for all else.
    std::string name = "/dev/shm/clrsampler-store-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) {
      name = ::testing::TempDir() + "clrsampler-store-XXXXXX";
      if (mkdtemp(name.data()) == nullptr) ADD_FAILURE() << "no temporary folder";
    }
    folder_ = name;
  }
  ~StoreFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  std::string folder() const { return folder_; }
  std::string path() const { return folder_ + "/history.db"; }

  absl::StatusOr<std::unique_ptr<History>> TryOpen(const HistoryLimits& limits = {}) {
    return History::Open(path(), limits, [this](const std::string& sentence) { said.push_back(sentence); });
  }
  std::unique_ptr<History> Open(const HistoryLimits& limits = {}) {
    absl::StatusOr<std::unique_ptr<History>> history = TryOpen(limits);
    EXPECT_TRUE(history.ok()) << history.status();
    return history.ok() ? *std::move(history) : nullptr;
  }
  uint64_t bytes() const {
    uint64_t sum = 0;
    for (const char* end : {"", "-wal"}) {
      std::error_code none;
      const auto size = std::filesystem::file_size(path() + end, none);
      if (!none) sum += size;
    }
    return sum;
  }

  std::vector<std::string> said;

 private:
  std::string folder_;
};

}  // namespace clrsampler::test_support

#endif  // CLRSAMPLER_TESTS_UNIT_STORE_STORE_FOLDER_H_
