#include "clr/memory/allocated_bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/clr/memory/fake_objects.h"

namespace clrsampler {
namespace {

using testing::Eq;
using testing::Optional;
using testing::Pair;
using testing::UnorderedElementsAre;

// Two threads of a runtime, whose allocation contexts are where the released runtimes have them.
class AllocatedBytesTest : public testing::TestWithParam<RuntimeKind> {
 protected:
  AllocatedBytesTest() : objects_(GetParam()) {
    first_ = objects_.Thread(101, 4);
    second_ = objects_.Thread(102, 5);
    SetContext(first_, 1'000'000, 0);
    SetContext(second_, 70'000, 2'000'000);
  }

  void SetContext(uint64_t thread, uint64_t small, uint64_t others) {
    uint64_t context = thread + 88;
    if (GetParam().version > 8) {
      const uint64_t locals = memory().Allocate(128);
      memory().Set<uint64_t>(thread + 32, locals);
      context = locals + (GetParam().version == 9 ? 0 : 8);
    }
    memory().Set<uint64_t>(context + 16, small);
    memory().Set<uint64_t>(context + 24, others);
  }
  std::optional<absl::flat_hash_map<uint64_t, uint64_t>> Read() {
    if (runtime_ == nullptr) runtime_ = *objects_.fake.Attach();
    return ReadAllocatedBytes(*runtime_);
  }
  FakeMemory& memory() { return objects_.fake.memory; }

  FakeObjects objects_;
  uint64_t first_, second_;
  std::unique_ptr<RuntimeMemory> runtime_;
};

INSTANTIATE_TEST_SUITE_P(, AllocatedBytesTest, testing::Values(8, 9, 10, 11),
                         [](const auto& test) { return Text(test.param); });

TEST_P(AllocatedBytesTest, SmallObjectsAndOthersOfEachThread) {
  EXPECT_THAT(Read(), Optional(UnorderedElementsAre(Pair(101, 1'000'000), Pair(102, 2'070'000))));
}

TEST_P(AllocatedBytesTest, AThreadThatHasEndedIsNotThere) {
  memory().Set<uint64_t>(second_ + objects_.fake.layout.thread_list.os_id, 0xbaadf00d);
  EXPECT_THAT(Read(), Optional(UnorderedElementsAre(Pair(101, 1'000'000))));
}

TEST_P(AllocatedBytesTest, AThreadThatHasAllocatedNothingHasNoContextYet) {
  memory().Set<uint64_t>(second_ + 32, 0);
  if (GetParam().version == 8) {  // the context is in the Thread
    EXPECT_THAT(Read(), Optional(UnorderedElementsAre(Pair(101, 1'000'000), Pair(102, 2'070'000))));
  } else {
    EXPECT_THAT(Read(), Optional(UnorderedElementsAre(Pair(101, 1'000'000))));
  }
}

TEST_P(AllocatedBytesTest, AThreadInThePlaceOfAnotherIsAnother) {
  memory().Set<uint64_t>(second_ + objects_.fake.layout.thread_list.os_id, 103);
  SetContext(second_, 500, 0);
  EXPECT_THAT(Read(), Optional(UnorderedElementsAre(Pair(101, 1'000'000), Pair(103, 500))));
}

TEST_P(AllocatedBytesTest, ThereAreNoMoreThanAProcessCanBeReadFor) {
  for (uint32_t id = 103; id < 101 + 4096; ++id) SetContext(objects_.Thread(id, 6), id, 0);
  const auto most = Read();
  ASSERT_TRUE(most.has_value());
  EXPECT_EQ(most->size(), 4096u);
  SetContext(objects_.Thread(5000, 7), 1, 0);
  EXPECT_THAT(Read(), Eq(std::nullopt));
}

TEST_P(AllocatedBytesTest, NothingIsToldWhereAContextCantBeRead) {
  const auto& at = objects_.fake.layout.thread_list;
  if (at.locals) {
    memory().Set<uint64_t>(second_ + *at.locals, 0x10);
  } else {
    // The last thread's end is not mapped.
    memory().Set<uint64_t>(first_ + at.next, at.leads_to_threads ? 0x10 : 0x10 + at.next);
  }
  EXPECT_THAT(Read(), Eq(std::nullopt));
}

TEST_P(AllocatedBytesTest, NothingIsToldOfAListThatCantBeRead) {
  memory().Set<uint64_t>(second_ + objects_.fake.layout.thread_list.next, 0x10);
  EXPECT_THAT(Read(), Eq(std::nullopt));
}

TEST_P(AllocatedBytesTest, ACircleOfThreadsEnds) {
  const auto& at = objects_.fake.layout.thread_list;
  memory().Set<uint64_t>(first_ + at.next, at.leads_to_threads ? second_ : second_ + at.next);
  EXPECT_THAT(Read(), Eq(std::nullopt));
}

}  // namespace
}  // namespace clrsampler
