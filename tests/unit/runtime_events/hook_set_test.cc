#include "runtime_events/hook_set.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "os/clock.h"

namespace clrsampler {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class ManualClock : public Clock {
 public:
  MonotonicTime Now() const override { return now; }
  MonotonicTime now{100 * kSecondNs};
};

// Probes are pipes: one that was closed is known by its other end.
class HookSetTest : public testing::Test {
 protected:
  HookSetTest() {
    char name[] = "/tmp/hook_set_test.XXXXXX";
    OpenedFile file{UniqueFd(mkstemp(name)), {}};
    unlink(name);
    EXPECT_EQ(fstat(file.fd.get(), &file.status), 0);
    file_ = std::make_shared<const OpenedFile>(std::move(file));
    set_ = std::make_unique<HookSet>(
        [this](const HookPlace& place, const std::string& path) { return Attach(place.hook, path, place.offset); },
        clock_);
  }

  absl::StatusOr<UniqueFd> Attach(wire_hook hook, const std::string& path, uint64_t offset) {
    clock_.now.ns += 1'000'000;
    if (hook == fails_) return absl::ResourceExhaustedError("no descriptors");
    EXPECT_EQ(path, "/proc/self/fd/" + std::to_string(file_->fd.get()));
    EXPECT_EQ(offset, 100u + hook);
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    planted_.push_back({hook, UniqueFd(ends[0])});
    return UniqueFd(ends[1]);
  }
  static HookPlace Place(wire_hook hook) { return {hook, HookForm::kPlain, 100u + hook}; }
  absl::Status Plant() {
    set_->Add(file_, {Place(WIRE_HOOK_COMPILED), Place(WIRE_HOOK_COMPILE)});
    return set_->Plant();
  }

  // Those that are there, in the order in which they were planted.
  std::vector<wire_hook> There() {
    set_->Await();
    std::vector<wire_hook> there;
    for (const auto& [hook, end] : planted_) {
      char byte;
      if (read(end.get(), &byte, 1) < 0) there.push_back(hook);  // EAGAIN; of a closed one 0
    }
    return there;
  }
  void WaitForRemoval() { set_->Await(); }

  struct Planted {
    wire_hook hook;
    UniqueFd end;
  };
  ManualClock clock_;
  std::shared_ptr<const OpenedFile> file_;
  std::vector<Planted> planted_;
  wire_hook fails_ = WIRE_HOOK_COUNT;
  std::unique_ptr<HookSet> set_;
};

TEST_F(HookSetTest, HitsCountFromWhenTheLastProbeIsThere) {
  EXPECT_FALSE(set_->IsCompleteAt({1000 * kSecondNs}));
  ASSERT_TRUE(Plant().ok());
  EXPECT_THAT(There(), ElementsAre(WIRE_HOOK_COMPILED, WIRE_HOOK_COMPILE));
  EXPECT_EQ(set_->complete_since(), clock_.now);
  EXPECT_FALSE(set_->IsCompleteAt({clock_.now.ns - 1}));
  EXPECT_TRUE(set_->IsCompleteAt(clock_.now));
  EXPECT_FALSE(set_->MayReattach());
}

TEST_F(HookSetTest, HalfASetIsNone) {
  fails_ = WIRE_HOOK_COMPILE;
  EXPECT_EQ(Plant().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(set_->planted());
  EXPECT_THAT(There(), IsEmpty());
  EXPECT_FALSE(set_->IsCompleteAt({1000 * kSecondNs}));
}

TEST_F(HookSetTest, WhatWasHitBeforeItRestsCountsWheneverItArrives) {
  ASSERT_TRUE(Plant().ok());
  const MonotonicTime detached_at{clock_.now.ns + kSecondNs};
  ASSERT_TRUE(set_->Detach(detached_at));
  EXPECT_TRUE(set_->IsCompleteAt({detached_at.ns - 1}));
  EXPECT_FALSE(set_->IsCompleteAt(detached_at));
}

TEST_F(HookSetTest, AtRestNoneIsThereAndThenAllAreBack) {
  ASSERT_TRUE(Plant().ok());
  ASSERT_TRUE(set_->Detach(clock_.Now()));
  EXPECT_FALSE(set_->Detach(clock_.Now())) << "it does already";
  EXPECT_THAT(There(), IsEmpty());
  EXPECT_FALSE(set_->IsCompleteAt({1000 * kSecondNs}));
  ASSERT_TRUE(set_->MayReattach());
  const MonotonicTime returns = clock_.now;
  ASSERT_TRUE(set_->Reattach().ok());
  EXPECT_THAT(There(), ElementsAre(WIRE_HOOK_COMPILED, WIRE_HOOK_COMPILE));
  EXPECT_FALSE(set_->detached());
  EXPECT_TRUE(set_->was_detached());
  EXPECT_GT(set_->complete_since(), returns);
  EXPECT_FALSE(set_->IsCompleteAt(returns));
}

TEST_F(HookSetTest, WhatCouldNotComeBackIsTriedAgain) {
  ASSERT_TRUE(Plant().ok());
  ASSERT_TRUE(set_->Detach(clock_.Now()));
  WaitForRemoval();
  fails_ = WIRE_HOOK_COMPILE;
  EXPECT_FALSE(set_->Reattach().ok());
  EXPECT_TRUE(set_->detached());
  EXPECT_TRUE(set_->planted());
  EXPECT_THAT(There(), IsEmpty()) << "half of it is none";
  EXPECT_FALSE(set_->MayReattach());
  clock_.now.ns += 10 * kSecondNs;
  fails_ = WIRE_HOOK_COUNT;
  ASSERT_TRUE(set_->MayReattach());
  EXPECT_TRUE(set_->Reattach().ok());
  EXPECT_THAT(There(), ElementsAre(WIRE_HOOK_COMPILED, WIRE_HOOK_COMPILE));
}

TEST_F(HookSetTest, IntoAFileThatWasChangedNothingComesBack) {
  ASSERT_TRUE(Plant().ok());
  ASSERT_TRUE(set_->Detach(clock_.Now()));
  WaitForRemoval();
  ASSERT_EQ(write(file_->fd.get(), "code", 4), 4);
  EXPECT_EQ(set_->Reattach().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(set_->planted());
  clock_.now.ns += 1000 * kSecondNs;
  EXPECT_FALSE(set_->MayReattach());
  EXPECT_FALSE(set_->IsCompleteAt(clock_.now));
  EXPECT_THAT(There(), IsEmpty());
}

TEST_F(HookSetTest, ProbesOfTwoFilesAreOneSet) {
  char name[] = "/tmp/hook_set_test.XXXXXX";
  OpenedFile other{UniqueFd(mkstemp(name)), {}};
  unlink(name);
  ASSERT_EQ(fstat(other.fd.get(), &other.status), 0);
  const auto beside = std::make_shared<const OpenedFile>(std::move(other));
  std::vector<std::string> paths;
  set_ = std::make_unique<HookSet>(
      [&](const HookPlace&, const std::string& path) -> absl::StatusOr<UniqueFd> {
        paths.push_back(path);
        return UniqueFd(dup(0));
      },
      clock_);
  set_->Add(beside, {Place(WIRE_HOOK_SUSPEND)});
  set_->Add(file_, {Place(WIRE_HOOK_ALLOCATED)});
  ASSERT_TRUE(set_->Plant().ok());
  EXPECT_THAT(paths, ElementsAre("/proc/self/fd/" + std::to_string(beside->fd.get()),
                                 "/proc/self/fd/" + std::to_string(file_->fd.get())));
  ASSERT_TRUE(set_->Detach(clock_.Now()));
  set_->Await();
  ASSERT_EQ(write(beside->fd.get(), "x", 1), 1);
  EXPECT_EQ(set_->Reattach().code(), absl::StatusCode::kFailedPrecondition) << "one of the files is another one now";
}

TEST_F(HookSetTest, OneIsLeftOutUntilItIsLetInAlsoBehindARest) {
  ASSERT_TRUE(Plant().ok());
  ASSERT_TRUE(set_->DetachProbe(WIRE_HOOK_COMPILE));
  EXPECT_TRUE(set_->is_detached(WIRE_HOOK_COMPILE));
  EXPECT_THAT(There(), ElementsAre(WIRE_HOOK_COMPILED));
  EXPECT_TRUE(set_->IsCompleteAt(clock_.now)) << "nobody misses it";
  ASSERT_TRUE(set_->Detach(clock_.Now()));
  WaitForRemoval();
  ASSERT_TRUE(set_->Reattach().ok());
  EXPECT_THAT(There(), ElementsAre(WIRE_HOOK_COMPILED));
  fails_ = WIRE_HOOK_COMPILE;
  set_->ReattachProbe(WIRE_HOOK_COMPILE);
  EXPECT_TRUE(set_->is_detached(WIRE_HOOK_COMPILE));
  fails_ = WIRE_HOOK_COUNT;
  set_->ReattachProbe(WIRE_HOOK_COMPILE);
  EXPECT_FALSE(set_->is_detached(WIRE_HOOK_COMPILE));
  EXPECT_THAT(There(), ElementsAre(WIRE_HOOK_COMPILED, WIRE_HOOK_COMPILE));
  EXPECT_FALSE(set_->DetachProbe(WIRE_HOOK_SUSPEND)) << "it has no such hook";
}

TEST_F(HookSetTest, LetInAtRestItComesBackWithTheOthers) {
  ASSERT_TRUE(Plant().ok());
  ASSERT_TRUE(set_->DetachProbe(WIRE_HOOK_COMPILE));
  WaitForRemoval();
  ASSERT_TRUE(set_->Detach(clock_.Now()));
  set_->ReattachProbe(WIRE_HOOK_COMPILE);
  EXPECT_THAT(There(), IsEmpty());
  ASSERT_TRUE(set_->Reattach().ok());
  EXPECT_THAT(There(), ElementsAre(WIRE_HOOK_COMPILED, WIRE_HOOK_COMPILE));
}

TEST_F(HookSetTest, ItsProbesGoWithIt) {
  ASSERT_TRUE(Plant().ok());
  set_ = std::make_unique<HookSet>(nullptr, clock_);
  EXPECT_THAT(There(), IsEmpty());
}

}  // namespace
}  // namespace clrsampler
