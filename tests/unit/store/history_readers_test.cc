// Finds whether damage is told of the file that it was met in, and of no other one.
#include "store/history_readers.h"

#include <gtest/gtest.h>

#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "store/history.h"
#include "unit/store/made_up_host.h"
#include "unit/store/store_folder.h"

namespace clrsampler {
namespace {

using test_support::MadeUpHost;
using test_support::StoreFolder;

class HistoryReadersTest : public ::testing::Test {
 protected:
  HistoryReadersTest() {
    {
      const auto history = folder_.Open();
      EXPECT_TRUE(history->Append(MadeUpHost({}).Next()).ok());
    }
    absl::StatusOr<HistoryFile> file = HistoryFile::Claim(folder_.path());
    EXPECT_TRUE(file.ok()) << file.status();
    if (file.ok()) file_.emplace(*std::move(file));
  }

  StoreFolder folder_;
  std::optional<HistoryFile> file_;
};

TEST_F(HistoryReadersTest, DamageOfTheFileInUseIsSeen) {
  HistoryReaders readers(*file_);
  EXPECT_TRUE(
      absl::IsDataLoss(readers.Ask<int>([](HistoryReader&) { return absl::DataLossError("a page"); }).status()));
  EXPECT_TRUE(readers.damage_seen());
  readers.Renew();
  EXPECT_FALSE(readers.damage_seen());
}

TEST_F(HistoryReadersTest, AQuestionAboutTheFileBeforeTellsNothingOfTheNewOne) {
  HistoryReaders readers(*file_);
  const absl::StatusOr<int> answer = readers.Ask<int>([&](HistoryReader&) {
    readers.Renew();  // the writer met the damage first, and has begun anew
    return absl::DataLossError("a page");
  });
  EXPECT_TRUE(absl::IsDataLoss(answer.status()));
  EXPECT_FALSE(readers.damage_seen());
}

}  // namespace
}  // namespace clrsampler
