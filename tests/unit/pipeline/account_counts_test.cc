#include "pipeline/account_counts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "pipeline/run_parts.h"
#include "unit/pipeline/fake_capture.h"

namespace clrsampler {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

class AccountCountsTest : public testing::Test {
 protected:
  AccountCountsTest() : parts_(RecordOptions(), nullptr, nullptr) {
    auto capture = std::make_unique<test_support::FakeCapture>();
    capture_ = capture.get();
    parts_.capture = std::move(capture);
    parts_.waits.emplace([](const ObservedWait&) {}, parts_.frames);
    parts_.intake.emplace(
        Intake::Parts{*parts_.capture, parts_.targets, parts_.table, parts_.unwinder, *parts_.sources.memory, nullptr,
                      nullptr, parts_.threads, parts_.account, parts_.notices},
        SamplesKept::kAll);
    parts_.counts.Begin();
  }

  RunParts parts_;
  test_support::FakeCapture* capture_ = nullptr;
};

TEST_F(AccountCountsTest, WaitsThatAreWholeNeedNoNotice) {
  parts_.CountAccount();
  EXPECT_THAT(parts_.account.notices, IsEmpty());
}

TEST_F(AccountCountsTest, ThreadsThatAreSeenAnewAreSaid) {
  capture_->counted.wait_seen_anew = 3;
  parts_.CountAccount();
  EXPECT_EQ(parts_.account.waits["seen_anew"], 3u);
  EXPECT_THAT(parts_.account.notices,
              Contains(AllOf(Field(&Notice::kind, "wait_table_full"), Field(&Notice::message, HasSubstr("3 times")))));
}

TEST_F(AccountCountsTest, EventsOfRuntimesThatWereDroppedAreNoWaits) {
  wire_thread thread{};
  thread.header = {sizeof thread, WIRE_THREAD, 0, 10};
  wire_wait wait{};
  wait.header = {sizeof wait, WIRE_WAIT, 0, 10};
  parts_.intake.emplace(
      Intake::Parts{*parts_.capture, parts_.targets, parts_.table, parts_.unwinder, *parts_.sources.memory, nullptr,
                    nullptr, parts_.threads, parts_.account, parts_.notices},
      SamplesKept::kAll, EventBudget(), /*max_queued_bytes=*/0);
  capture_->records.assign(3, std::string(reinterpret_cast<const char*>(&thread), sizeof thread));
  capture_->records.emplace_back(reinterpret_cast<const char*>(&wait), sizeof wait);
  parts_.intake->Drain();
  parts_.CountAccount();
  EXPECT_EQ(parts_.intake->runtime_events_dropped(), 3u);
  EXPECT_EQ(parts_.account.waits["records_lost"], 1u);
}

TEST_F(AccountCountsTest, StacksOfWaitsThatWereLostAreNoEvents) {
  wire_cpu_sample stack{};
  stack.header = {sizeof stack, WIRE_WAIT_STACK, 0, 10};
  stack.flags = WIRE_SAMPLE_KTHREAD;
  parts_.intake.emplace(
      Intake::Parts{*parts_.capture, parts_.targets, parts_.table, parts_.unwinder, *parts_.sources.memory, nullptr,
                    nullptr, parts_.threads, parts_.account, parts_.notices},
      SamplesKept::kAll, EventBudget(), /*max_queued_bytes=*/1);
  capture_->records.assign(3, std::string(reinterpret_cast<const char*>(&stack), sizeof stack));
  parts_.intake->Drain();
  parts_.CountAccount();
  EXPECT_EQ(parts_.account.waits["stacks_lost"], 2u);
  EXPECT_EQ(parts_.account.waits["records_lost"], 0u);
  EXPECT_THAT(parts_.account.notices, ElementsAre(AllOf(Field(&Notice::kind, "wait_stacks_lost"),
                                                        Field(&Notice::message, HasSubstr("2 stacks")))));
}

}  // namespace
}  // namespace clrsampler
