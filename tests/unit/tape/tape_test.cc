// A run that is saved and then played: both kinds of tape together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "os/file_io.h"
#include "os/tape_answer.h"
#include "tape/recorded_tape.h"
#include "tape/run_json.h"
#include "tape/saved_tape.h"

namespace clrsampler {
namespace {

class TapeTest : public testing::Test {
 protected:
  TapeTest() {
    char folder[] = "/tmp/tape_testXXXXXX";
    folder_ = mkdtemp(folder);
    path_ = absl::StrCat(folder_, "/a.stream");
  }
  ~TapeTest() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<SavedTape> Save(uint64_t max_bytes = kMaxTapeBytes) {
    absl::StatusOr<std::unique_ptr<SavedTape>> tape = SavedTape::Create(path_, "{}", max_bytes);
    EXPECT_TRUE(tape.ok()) << tape.status();
    return *std::move(tape);
  }
  RecordedTape Play() {
    const absl::StatusOr<std::string> records = UnpackTape(*ReadWholeFile(path_, 1 << 20));
    EXPECT_TRUE(records.ok()) << records.status();
    return RecordedTape(records.value_or(""));
  }
  static uint64_t Ask(Tape& tape, absl::string_view question, uint64_t answer) {
    return Taped(
        &tape, [&] { return answer; }, question);
  }

  std::string folder_;
  std::string path_;
};

constexpr uint64_t kNotAsked = 999;

TEST_F(TapeTest, AnswersAreThoseOfTheirTurnAndPlace) {
  {
    const auto saved = Save();
    EXPECT_EQ(Ask(*saved, "a", 1), 1u);
    EXPECT_EQ(Ask(*saved, "a", 2), 2u);
    saved->NextIteration();
    EXPECT_EQ(Ask(*saved, "a", 2), 2u);
    EXPECT_EQ(Ask(*saved, "b", 7), 7u);
    EXPECT_EQ(Ask(*saved, "a", 3), 3u);
    saved->NextIteration();
    EXPECT_EQ(Ask(*saved, "a", 4), 4u);
    ASSERT_TRUE(saved->Finish().ok());
  }
  RecordedTape played = Play();
  EXPECT_TRUE(played.whole());
  EXPECT_EQ(Ask(played, "a", kNotAsked), 1u);
  EXPECT_EQ(Ask(played, "a", kNotAsked), 2u);
  played.NextIteration();
  EXPECT_EQ(Ask(played, "a", kNotAsked), 2u) << "what has not changed is not written again";
  EXPECT_EQ(Ask(played, "b", kNotAsked), 7u);
  EXPECT_EQ(Ask(played, "a", kNotAsked), 3u);
  EXPECT_EQ(Ask(played, "a", kNotAsked), 3u) << "asked more often than in the recording: the last one of the turn";
  played.NextIteration();
  EXPECT_FALSE(played.ended());
  EXPECT_EQ(Ask(played, "a", kNotAsked), 4u);
  played.NextIteration();
  EXPECT_TRUE(played.ended());
  EXPECT_EQ(played.missing(), 0u);
}

TEST_F(TapeTest, AQuestionThatIsNotOnTheTapeIsCountedAndHasNoAnswer) {
  {
    const auto saved = Save();
    ASSERT_TRUE(saved->Finish().ok());
  }
  RecordedTape played = Play();
  EXPECT_EQ(Ask(played, "a", kNotAsked), 0u);
  EXPECT_TRUE(absl::IsDataLoss(Taped(
      &played, [] { return absl::OkStatus(); }, "b")));
  EXPECT_EQ(played.missing(), 2u);
}

TEST_F(TapeTest, ATypeOfEachKindComesBack) {
  const absl::StatusOr<std::string> refused = absl::PermissionDeniedError("no");
  const std::vector<std::string> words = {"", "two"};
  {
    const auto saved = Save();
    EXPECT_FALSE(Taped(
                     saved.get(), [&] { return refused; }, "refused")
                     .ok());
    Taped(
        saved.get(), [&] { return words; }, "words");
    Taped(
        saved.get(), [] { return std::optional<uint32_t>(); }, "none");
    Taped(
        saved.get(), [] { return true; }, "yes");
    ASSERT_TRUE(saved->Finish().ok());
  }
  RecordedTape played = Play();
  EXPECT_EQ(Taped(
                &played, [] { return absl::StatusOr<std::string>("other"); }, "refused")
                .status(),
            refused.status());
  EXPECT_EQ(Taped(
                &played, [] { return std::vector<std::string>(); }, "words"),
            words);
  EXPECT_EQ(Taped(
                &played, [] { return std::optional<uint32_t>(5); }, "none"),
            std::nullopt);
  EXPECT_TRUE(Taped(
      &played, [] { return false; }, "yes"));
}

TEST_F(TapeTest, ReadsOfFilesComeBackAndTheRestIsZero) {
  const std::string file = absl::StrCat(folder_, "/file");
  const std::string text(200'000, 'x');
  std::ofstream(file) << text;
  const FileOnTape identity{1, 2, text.size(), 3};
  {
    const auto saved = Save();
    const absl::StatusOr<UniqueFd> fd = OpenForReading(file);
    ASSERT_TRUE(fd.ok());
    const absl::StatusOr<MappedFile> mapped = saved->Map(identity, fd->get(), 1 << 20);
    ASSERT_TRUE(mapped.ok()) << mapped.status();
    EXPECT_EQ(static_cast<char>(mapped->bytes()[100'000]), 'x');
    ASSERT_TRUE(saved->Finish().ok());
  }
  RecordedTape played = Play();
  const absl::StatusOr<MappedFile> mapped = played.Map(identity, -1, 1 << 20);
  ASSERT_TRUE(mapped.ok()) << mapped.status();
  ASSERT_EQ(mapped->bytes().size(), text.size());
  EXPECT_EQ(static_cast<char>(mapped->bytes()[100'001]), 'x');
  EXPECT_EQ(static_cast<char>(mapped->bytes()[0]), '\0') << "it was never read";
  EXPECT_TRUE(absl::IsNotFound(played.Map({9, 9, 9, 9}, -1, 1 << 20).status()));
  EXPECT_TRUE(absl::IsResourceExhausted(played.Map(identity, -1, 1000).status()));
}

TEST_F(TapeTest, AFullTapeSaysSoAndPlaysToItsEnd) {
  {
    const auto saved = Save(300);
    for (uint64_t i = 0; i < 100; ++i) EXPECT_EQ(Ask(*saved, "a", i), i);
    EXPECT_TRUE(absl::IsResourceExhausted(saved->Finish()));
  }
  RecordedTape played = Play();
  EXPECT_FALSE(played.whole());
  EXPECT_EQ(Ask(played, "a", kNotAsked), 0u);
  EXPECT_EQ(Ask(played, "a", kNotAsked), 1u);
}

TEST_F(TapeTest, AFullTapeHasItsFilesAsFarAsTheyFit) {
  const std::string file = absl::StrCat(folder_, "/file");
  const std::string text(200'000, 'x');
  std::ofstream(file) << text;
  const FileOnTape identity{1, 2, text.size(), 3};
  {
    const auto saved = Save(4 * 40'000);
    const absl::StatusOr<UniqueFd> fd = OpenForReading(file);
    ASSERT_TRUE(fd.ok());
    const absl::StatusOr<MappedFile> mapped = saved->Map(identity, fd->get(), 1 << 20);
    ASSERT_TRUE(mapped.ok()) << mapped.status();
    EXPECT_EQ(static_cast<char>(mapped->bytes()[0]), 'x');
    EXPECT_EQ(static_cast<char>(mapped->bytes()[100'000]), 'x');
    EXPECT_EQ(static_cast<char>(mapped->bytes()[190'000]), 'x');
    for (uint64_t i = 0; i < 10'000; ++i) Ask(*saved, "a", i);
    const absl::Status finished = saved->Finish();
    EXPECT_TRUE(absl::IsResourceExhausted(finished));
    EXPECT_THAT(std::string(finished.message()), testing::HasSubstr("bytes of files"));
  }
  RecordedTape played = Play();
  EXPECT_FALSE(played.whole());
  const absl::StatusOr<MappedFile> mapped = played.Map(identity, -1, 1 << 20);
  ASSERT_TRUE(mapped.ok()) << mapped.status();
  EXPECT_EQ(static_cast<char>(mapped->bytes()[0]), 'x') << "two of the three runs of pages fit";
  EXPECT_EQ(static_cast<char>(mapped->bytes()[100'000]), 'x');
  EXPECT_EQ(static_cast<char>(mapped->bytes()[190'000]), '\0');
}

TEST_F(TapeTest, AFullTapeHasRoomForTheHeadsOfAllItsFiles) {
  constexpr uint64_t kMaxBytes = 120'000, kFiles = 1000;
  const std::string file = absl::StrCat(folder_, "/file");
  const std::string text(200'000, 'x');
  std::ofstream(file) << text;
  {
    const auto saved = Save(kMaxBytes);
    for (uint64_t i = 0; i < kFiles; ++i) {
      const absl::StatusOr<UniqueFd> fd = OpenForReading(file);
      ASSERT_TRUE(fd.ok());
      const absl::StatusOr<MappedFile> mapped = saved->Map({1, i, text.size(), 3}, fd->get(), 1 << 20);
      ASSERT_TRUE(mapped.ok()) << mapped.status();
      EXPECT_EQ(static_cast<char>(mapped->bytes()[0]), 'x');
    }
    EXPECT_TRUE(absl::IsResourceExhausted(saved->Finish()));
  }
  const absl::StatusOr<std::string> records = UnpackTape(*ReadWholeFile(path_, 1 << 20), kMaxBytes);
  ASSERT_TRUE(records.ok()) << records.status();
  RecordedTape played(*records);
  EXPECT_TRUE(played.Map({1, kFiles - 1, text.size(), 3}, -1, 1 << 20).ok());
}

TEST_F(TapeTest, ARunThatIsNotFinishedLeavesNoFile) {
  { const auto saved = Save(); }
  EXPECT_FALSE(std::filesystem::exists(path_));
  { Save()->NextIteration(); }
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(TapeTest, ARunThatDoesNotBeginLeavesTheFileOfTheLastOne) {
  std::ofstream(path_) << "the last one";
  { Ask(*Save(), "a", 1); }
  EXPECT_EQ(*ReadWholeFile(path_, 1 << 20), "the last one");
  { Save()->NextIteration(); }
  EXPECT_EQ(*ReadWholeFile(path_, 1 << 20), "") << "it began";
  const auto saved = Save();
  saved->NextIteration();
  ASSERT_TRUE(saved->Finish().ok());
  EXPECT_TRUE(Play().whole());
}

TEST_F(TapeTest, OthersCannotReadTheFile) {
  const auto saved = Save();
  EXPECT_EQ(std::filesystem::status(path_).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST(RunJsonTest, OptionsComeBack) {
  RecordOptions options;
  options.pids = {7, 8};
  options.command = {"dotnet", "Shop.dll"};
  options.duration_ns = 5;
  options.frequency_hz = 499;
  options.view = RecordView::kPause;
  options.roles = false;
  options.names = NameStyle::kFull;
  options.probe_cost_share = 0;
  const absl::StatusOr<RecordOptions> back = ParseRunJson(RunJson(options, {"there", "Shop", 17}));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->pids, options.pids);
  EXPECT_EQ(back->command, options.command);
  EXPECT_EQ(back->duration_ns, options.duration_ns);
  EXPECT_EQ(back->frequency_hz, options.frequency_hz);
  EXPECT_EQ(back->view, options.view);
  EXPECT_EQ(back->roles, options.roles);
  EXPECT_EQ(back->names, options.names);
  EXPECT_EQ(back->probe_cost_share, options.probe_cost_share);
  ASSERT_TRUE(back->origin.has_value());
  EXPECT_EQ(back->origin->host, "there");
  EXPECT_EQ(back->origin->comm, "Shop");
  EXPECT_EQ(back->origin->boot_unix_ns, 17u);
  EXPECT_EQ(ParseRunJson("{}")->origin->boot_unix_ns, 0u) << "not known";
}

TEST(RunJsonTest, HostileTextIsRefusedOrBounded) {
  EXPECT_TRUE(absl::IsDataLoss(ParseRunJson("").status()));
  EXPECT_TRUE(absl::IsDataLoss(ParseRunJson("[1]").status()));
  const absl::StatusOr<RecordOptions> bounded =
      ParseRunJson(R"({"frequency_hz": 0, "max_frames": 4000000000, "view": 77, "pids": ["x", -1, 3], "replay": 1})");
  ASSERT_TRUE(bounded.ok());
  EXPECT_EQ(bounded->frequency_hz, 1u);
  EXPECT_EQ(bounded->max_frames, static_cast<uint32_t>(WIRE_MAX_USER_FRAMES));
  EXPECT_EQ(bounded->view, RecordView::kWall);
  EXPECT_THAT(bounded->pids, testing::ElementsAre(3u));
  EXPECT_TRUE(bounded->unwind_data);
}

}  // namespace
}  // namespace clrsampler
