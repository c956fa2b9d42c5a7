#include "clr/memory/code_ranges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/clr/memory/fake_runtime.h"

namespace clrsampler {
namespace {

// Across a boundary of 128 KiB, so that it has two entries of the map's lowest level.
constexpr uint64_t kRangeCode = 0x7F12'3457'F000, kRangeBytes = 0x4000;

class CodeRangesTest : public testing::TestWithParam<RuntimeKind> {
 protected:
  std::optional<CodeSection> Find(uint64_t address, ProbeFailure expected = ProbeFailure::kNone) {
    MemoryProbe probe(runtime_.memory);
    const auto section = ranges_->FindSection(probe, address);
    EXPECT_EQ(probe.failure(), expected) << probe.detail();
    return section;
  }
  std::optional<MethodCode> FindMethod(uint64_t address, ProbeFailure expected = ProbeFailure::kNone) {
    MemoryProbe probe(runtime_.memory);
    const auto section = ranges_->FindSection(probe, address);
    if (!section) return std::nullopt;
    const auto method = ranges_->FindMethod(probe, *section, address);
    EXPECT_EQ(probe.failure(), expected) << probe.detail();
    EXPECT_TRUE(probe.ok() || !method);
    return method;
  }

  FakeRuntime runtime_{GetParam()};
  // One that has seen nothing yet.
  void Reopen() { ranges_.emplace(runtime_.layout, FakeRuntime::kRangeMap, runtime_.image()); }
  void SetUp() override { Reopen(); }

  std::optional<CodeRanges> ranges_;
};

INSTANTIATE_TEST_SUITE_P(Majors, CodeRangesTest,
                         testing::Values(8, 9, 10, RuntimeKind(9, ElfMachine::kArm64),
                                         RuntimeKind(11, ElfMachine::kArm64)),
                         [](const auto& one) { return Text(one.param); });

TEST_P(CodeRangesTest, FindsSectionsOfEachKindAtTheirEdges) {
  runtime_.AddHeap(kRangeCode, kRangeBytes);
  runtime_.AddHeap(kRangeCode + kRangeBytes, 0x1000, /*collectible=*/true);
  runtime_.AddStubs({kRangeCode + 0x8000, kRangeCode + 0x9000}, 5);
  const uint64_t image = runtime_.AddSection({kRangeCode + 0xA000, kRangeCode + 0xB000}, 0);
  runtime_.memory.Set<uint64_t>(image + runtime_.layout.range_section.r2r_module, 0x1234);
  EXPECT_EQ(Find(kRangeCode - 1), std::nullopt);
  for (const uint64_t address : {kRangeCode, kRangeCode + 0xFFF, kRangeCode + 0x1000, kRangeCode + kRangeBytes - 1}) {
    const auto heap = Find(address);
    ASSERT_TRUE(heap.has_value()) << std::hex << address;
    EXPECT_EQ(heap->kind, CodeSectionKind::kCodeHeap);
    EXPECT_FALSE(heap->collectible);
    EXPECT_EQ(heap->range.begin, kRangeCode);
  }
  EXPECT_TRUE(Find(kRangeCode + kRangeBytes)->collectible);
  EXPECT_EQ(Find(kRangeCode + kRangeBytes + 0x1000), std::nullopt);
  EXPECT_EQ(Find(kRangeCode + 0x8000)->kind, CodeSectionKind::kStubs);
  EXPECT_EQ(Find(kRangeCode + 0x8FFF)->stub_kind, 5u);
  EXPECT_EQ(Find(kRangeCode + 0xA000)->kind, CodeSectionKind::kPrecompiled);
  EXPECT_EQ(Find(kRangeCode + 0xA000)->r2r_module, 0x1234u);
  EXPECT_EQ(Find(0), std::nullopt);
  EXPECT_EQ(Find(~uint64_t{0}), std::nullopt);
  MemoryProbe probe(runtime_.memory, 10'000);
  EXPECT_EQ(ranges_->Sections(probe).size(), 4u);
}

TEST_P(CodeRangesTest, WhatCanNotBeFreedIsReadOnceAndWhatCanIsReadEachTime) {
  FakeRuntime::Heap& permanent = runtime_.AddHeap(kRangeCode, kRangeBytes);
  FakeRuntime::Heap& transient = runtime_.AddHeap(kRangeCode + kRangeBytes, kRangeBytes, /*collectible=*/true);
  const auto& at = runtime_.layout.code_heap;
  runtime_.AddCode(permanent, 0x40, 100, 0xAAAA);
  runtime_.AddCode(permanent, 0x200, 100, 0xBBBB);
  runtime_.AddCode(transient, 0x40, 100, 0xCCCC);
  const auto reads_of = [&](uint64_t address) {
    const uint64_t before = runtime_.memory.reads;
    EXPECT_TRUE(FindMethod(address).has_value()) << std::hex << address;
    return runtime_.memory.reads - before;
  };
  const uint64_t first = reads_of(kRangeCode + 0x48);
  EXPECT_LE(reads_of(kRangeCode + 0x208) + 7, first) << "five levels of the map, the section, the heap";
  reads_of(kRangeCode + kRangeBytes + 0x48);
  EXPECT_EQ(reads_of(kRangeCode + kRangeBytes + 0x48) + 5, first) << "all but four levels and the class of its manager";

  // A heap that has grown is read again; one that is freed is not found any more.
  Reopen();
  runtime_.memory.Set<uint64_t>(permanent.list + at.end, kRangeCode + 0x100);
  EXPECT_TRUE(FindMethod(kRangeCode + 0x48).has_value());
  EXPECT_EQ(FindMethod(kRangeCode + 0x208), std::nullopt);
  runtime_.memory.Set<uint64_t>(permanent.list + at.end, kRangeCode + kRangeBytes);
  EXPECT_TRUE(FindMethod(kRangeCode + 0x208).has_value());
  EXPECT_TRUE(Find(kRangeCode + kRangeBytes).has_value());
  runtime_.memory.Set<uint64_t>(runtime_.MapSlot(kRangeCode + kRangeBytes), 0);
  EXPECT_EQ(Find(kRangeCode + kRangeBytes), std::nullopt);
}

// The parts that are listed again are the tables of the map, code that can be freed, and what is new.
TEST_P(CodeRangesTest, SectionsThatCanNotBeFreedAreListedFromMemory) {
  constexpr uint64_t kChunk = uint64_t{1} << 17, kTables = 5;
  for (uint64_t i = 0; i < 20; ++i) runtime_.AddHeap(kRangeCode + i * kChunk, 0x1000);
  uint64_t reads = 0;
  const auto list = [&] {
    const uint64_t before = runtime_.memory.reads;
    MemoryProbe probe(runtime_.memory, 10'000);
    std::vector<uint64_t> begins;
    for (const CodeSection& section : ranges_->Sections(probe)) begins.push_back(section.range.begin);
    EXPECT_TRUE(probe.ok()) << probe.detail();
    reads = runtime_.memory.reads - before;
    return begins;
  };
  EXPECT_EQ(list().size(), 20u);
  EXPECT_GT(reads, 40u);
  EXPECT_EQ(list().size(), 20u);
  EXPECT_EQ(reads, kTables);

  // One that can be freed, behind the same slot as a permanent one.
  const uint64_t slot = runtime_.MapSlot(kRangeCode);
  ASSERT_EQ(runtime_.MapSlot(kRangeCode - 0x1000), slot);
  const uint64_t alone = *runtime_.memory.Value<uint64_t>(slot);
  runtime_.AddHeap(kRangeCode - 0x1000, 0x100, /*collectible=*/true);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(list().size(), 21u);
    EXPECT_GT(reads, kTables) << "it may be another one each time";
  }
  runtime_.memory.Set<uint64_t>(slot, alone);
  EXPECT_EQ(list().size(), 20u);

  runtime_.AddHeap(kRangeCode + 30 * kChunk, 0x1000);
  EXPECT_EQ(list().size(), 21u);
  EXPECT_EQ(list().size(), 21u);
  EXPECT_EQ(reads, kTables);
}

// The way to what is not there yet is remembered, and that it was not there is not.
TEST_P(CodeRangesTest, WhatComesWhereNothingWasIsFound) {
  for (const uint64_t far : {uint64_t{0}, uint64_t{1} << 17, uint64_t{1} << 25, uint64_t{1} << 33, uint64_t{1} << 41}) {
    EXPECT_EQ(Find(kRangeCode + far), std::nullopt);
    EXPECT_EQ(Find(kRangeCode + far), std::nullopt);
    runtime_.AddHeap(kRangeCode + far, 0x1000);
    EXPECT_TRUE(Find(kRangeCode + far).has_value()) << far;
  }
}

TEST_P(CodeRangesTest, FragmentsInACircleEnd) {
  runtime_.AddHeap(kRangeCode, 0x1000);
  const uint64_t fragment = *runtime_.memory.Value<uint64_t>(runtime_.MapSlot(kRangeCode));
  runtime_.memory.Set<uint64_t>(fragment + runtime_.layout.range_fragment.next, fragment | 1);
  Find(kRangeCode - 1, ProbeFailure::kContradiction);
  EXPECT_TRUE(Find(kRangeCode).has_value());
  MemoryProbe probe(runtime_.memory, 10'000);
  EXPECT_EQ(ranges_->Sections(probe).size(), 1u);
}

// Every entry of every level shows the table itself: a walk of all would take 256 to the power of 5 steps.
TEST_P(CodeRangesTest, AMapThatPointsToItselfIsListedWithinTheBudget) {
  for (uint64_t i = 0; i < 256; ++i) {
    runtime_.memory.Set<uint64_t>(FakeRuntime::kRangeMap + 8 * i, FakeRuntime::kRangeMap | 1);
  }
  const uint64_t before = runtime_.memory.reads;
  MemoryProbe probe(runtime_.memory, 5'000);
  ranges_->Sections(probe);
  EXPECT_LE(runtime_.memory.reads - before, 5'000u);
  EXPECT_FALSE(probe.ok());
  MemoryProbe one(runtime_.memory);
  EXPECT_EQ(ranges_->FindSection(one, kRangeCode), std::nullopt);
}

TEST_P(CodeRangesTest, SectionsThatContradictThemselvesAreRefused) {
  const auto& at = runtime_.layout.range_section;
  FakeRuntime::Heap& heap = runtime_.AddHeap(kRangeCode, 0x1000);
  const uint64_t manager = *runtime_.memory.Value<uint64_t>(heap.section + at.jit_manager);
  for (const uint64_t not_of_the_runtime :
       {uint64_t{0}, FakeRuntime::kImage - 8, FakeRuntime::kImage + FakeRuntime::kImageBytes}) {
    runtime_.memory.Set<uint64_t>(manager, not_of_the_runtime);
    EXPECT_EQ(Find(kRangeCode, ProbeFailure::kContradiction), std::nullopt);
  }
  runtime_.memory.Set<uint64_t>(manager, FakeRuntime::kClass);
  EXPECT_TRUE(Find(kRangeCode).has_value());
  Reopen();
  runtime_.memory.Set<uint64_t>(heap.section + at.begin, kRangeCode + 0x800);
  EXPECT_EQ(Find(kRangeCode, ProbeFailure::kContradiction), std::nullopt) << "the fragment is larger than its section";
  runtime_.memory.Set<uint64_t>(heap.section + at.begin, kRangeCode + 0x1000);
  EXPECT_EQ(Find(kRangeCode, ProbeFailure::kContradiction), std::nullopt);
  runtime_.memory.Set<uint64_t>(heap.section + at.begin, kRangeCode);
  runtime_.memory.Set<uint32_t>(heap.section + at.flags, 8);
  EXPECT_EQ(Find(kRangeCode, ProbeFailure::kUnsupported), std::nullopt);
  runtime_.memory.Unmap(heap.section);
  EXPECT_EQ(Find(kRangeCode, ProbeFailure::kUnreadable), std::nullopt);
}

TEST_P(CodeRangesTest, AMethodIsFoundFromItsFirstByteToItsLastFuncletsIncluded) {
  FakeRuntime::Heap& heap = runtime_.AddHeap(kRangeCode, kRangeBytes);
  const uint64_t header = runtime_.AddCode(heap, 0x40, 700, 0xAAAA, /*funclet_bytes=*/900);
  runtime_.AddCode(heap, 0xA00, 50, 0xBBBB);
  EXPECT_EQ(FindMethod(kRangeCode + 0x3F), std::nullopt);
  for (const uint64_t offset : {0x40, 0x41, 0x40 + 699, 0x40 + 700, 0x40 + 1599}) {
    const auto method = FindMethod(kRangeCode + offset);
    ASSERT_TRUE(method.has_value()) << offset;
    EXPECT_EQ(method->range.begin, kRangeCode + 0x40);
    EXPECT_EQ(method->range.end, kRangeCode + 0x40 + 1600);
    EXPECT_EQ(method->header, header);
    EXPECT_EQ(method->method_desc, 0xAAAAu);
  }
  EXPECT_EQ(FindMethod(kRangeCode + 0x40 + 1600), std::nullopt);
  EXPECT_EQ(FindMethod(kRangeCode + 0xA00)->method_desc, 0xBBBBu);
  EXPECT_EQ(FindMethod(kRangeCode + 0xA00 + 50), std::nullopt);
  EXPECT_EQ(FindMethod(kRangeCode + kRangeBytes - 1), std::nullopt);
  MemoryProbe probe(runtime_.memory);
  EXPECT_THAT(ranges_->Starts(probe, *Find(kRangeCode), 100),
              testing::ElementsAre(kRangeCode + 0x40, kRangeCode + 0xA00));
}

// The map has a word for 256 bytes, and says that a method begins in each 32 of them.
TEST_P(CodeRangesTest, AMapThatIsFullIsReadAsFarAsItsStartsAreWanted) {
  FakeRuntime::Heap& heap = runtime_.AddHeap(kRangeCode, 0x8'0000);
  std::ranges::fill(heap.nibbles.words, 0x1111'1111);
  runtime_.WriteNibbles(heap);
  const std::optional<CodeSection> section = Find(kRangeCode);
  MemoryProbe probe(runtime_.memory);
  uint64_t of_map = 0;
  runtime_.memory.before_read = [&](uint64_t address) {
    of_map += heap.map <= address && address < heap.map + 4 * heap.nibbles.words.size() ? 1 : 0;
  };
  EXPECT_THAT(ranges_->Starts(probe, *section, 3),
              testing::ElementsAre(kRangeCode, kRangeCode + 0x20, kRangeCode + 0x40));
  EXPECT_EQ(of_map, 1u);
}

TEST_P(CodeRangesTest, RandomHeapsGiveTheMethodOfEveryAddress) {
  std::mt19937_64 random(31);
  FakeRuntime::Heap& heap = runtime_.AddHeap(kRangeCode, kRangeBytes);
  const NibbleHeap plan = NibbleHeap::Random(NibbleMapVersion::k1, random, kRangeBytes);
  std::vector<NibbleHeap::Method> methods;
  for (const NibbleHeap::Method& method : plan.methods) {
    if (method.start < 8) continue;
    methods.push_back(method);
    if (GetParam().machine == ElfMachine::kArm64) methods.back().bytes = (method.bytes + 3) / 4 * 4;
    runtime_.AddCode(heap, method.start, static_cast<uint32_t>(methods.back().bytes), 0x1000 + method.start);
  }
  ASSERT_GT(methods.size(), 10u);
  for (uint64_t offset = 0; offset < kRangeBytes; ++offset) {
    const auto method = FindMethod(kRangeCode + offset);
    const auto expected = std::find_if(methods.begin(), methods.end(), [&](const auto& one) {
      return one.start <= offset && offset < one.start + one.bytes;
    });
    ASSERT_EQ(method.has_value(), expected != methods.end()) << offset;
    if (method) {
      ASSERT_EQ(method->method_desc, 0x1000 + expected->start);
    }
  }
}

TEST_P(CodeRangesTest, StubsInACodeHeapAreTold) {
  FakeRuntime::Heap& heap = runtime_.AddHeap(kRangeCode, kRangeBytes);
  runtime_.AddCode(heap, 0x40, 100, 0xAAAA);
  runtime_.SetHeader(heap, 0x40, 6);
  const auto stub = FindMethod(kRangeCode + 0x48);
  ASSERT_TRUE(stub.has_value());
  EXPECT_STREQ(StubKindName(10, stub->stub_kind), "VSD_DispatchStub");
  EXPECT_STREQ(StubKindName(11, stub->stub_kind), "VSD_ResolveStub");
  EXPECT_STREQ(StubKindName(11, 4), "FixupPrecode");
  EXPECT_STREQ(StubKindName(11, 9), "CallCountingStub");
  EXPECT_STREQ(StubKindName(11, 12), "Unknown");
  EXPECT_STREQ(StubKindName(12, 6), "Unknown");
  runtime_.SetHeader(heap, 0x40, 0);
  FindMethod(kRangeCode + 0x48, ProbeFailure::kContradiction);
}

TEST_P(CodeRangesTest, HeadersThatContradictThemselvesAreRefused) {
  FakeRuntime::Heap& heap = runtime_.AddHeap(kRangeCode, kRangeBytes);
  const auto& at = runtime_.layout.code_header;
  const uint64_t header = runtime_.AddCode(heap, 0x40, 100, 0xAAAA);
  for (const uint32_t count : {0u, 4096u, 0xFFFFFFFFu}) {
    runtime_.memory.Set<uint32_t>(header + at.unwind_count, count);
    FindMethod(kRangeCode + 0x48, ProbeFailure::kContradiction);
  }
  runtime_.memory.Set<uint32_t>(header + at.unwind_count, 4095);
  FindMethod(kRangeCode + 0x48, ProbeFailure::kUnreadable);
  runtime_.memory.Set<uint32_t>(header + at.unwind_count, 1);
  if (runtime_.layout.runtime_function.has_end) {
    for (const uint32_t end : {0x40u, static_cast<uint32_t>(kRangeBytes + 1), 0xFFFFFFFFu}) {
      runtime_.memory.Set<uint32_t>(header + at.unwinds + 4, end);
      FindMethod(kRangeCode + 0x48, ProbeFailure::kContradiction);
    }
  } else {
    const uint64_t unwind_data = kRangeCode + *runtime_.memory.Value<uint32_t>(header + at.unwinds + 4);
    for (const uint32_t length : {0u, 0x3FFFFu, 0xFFFFFFFFu}) {
      runtime_.memory.Set<uint32_t>(unwind_data, length);
      FindMethod(kRangeCode + 0x48, ProbeFailure::kContradiction);
    }
    runtime_.memory.Set<uint32_t>(header + at.unwinds + 4, 0x7000'0000);
    FindMethod(kRangeCode + 0x48, ProbeFailure::kUnreadable);
    // Packed into the word itself: 25 instructions.
    runtime_.memory.Set<uint32_t>(header + at.unwinds + 4, 25 << 2 | 1);
    EXPECT_EQ(FindMethod(kRangeCode + 0x48)->range.end, kRangeCode + 0x40 + 100);
    runtime_.memory.Set<uint32_t>(header + at.unwinds + 4, 1);
    FindMethod(kRangeCode + 0x48, ProbeFailure::kContradiction);
  }
  runtime_.SetHeader(heap, 0x40, 0x4141414141414141);
  FindMethod(kRangeCode + 0x48, ProbeFailure::kUnreadable);
}

TEST_P(CodeRangesTest, AHeaderThatIsReplacedWhileItIsReadIsChanged) {
  FakeRuntime::Heap& heap = runtime_.AddHeap(kRangeCode, kRangeBytes);
  const uint64_t header = runtime_.AddCode(heap, 0x40, 100, 0xAAAA);
  runtime_.memory.before_read = [&](uint64_t address) {
    if (address == header + runtime_.layout.code_header.unwinds) runtime_.SetHeader(heap, 0x40, header + 8);
  };
  EXPECT_EQ(FindMethod(kRangeCode + 0x48, ProbeFailure::kChanged), std::nullopt);
}

TEST_P(CodeRangesTest, HeapsOutsideTheirMapAreRefused) {
  FakeRuntime::Heap& heap = runtime_.AddHeap(kRangeCode, kRangeBytes);
  runtime_.AddCode(heap, 0x40, 100, 0xAAAA);
  const auto& at = runtime_.layout.code_heap;
  const auto refused = [&](uint32_t field, uint64_t value) {
    const uint64_t before = *runtime_.memory.Value<uint64_t>(heap.list + field);
    runtime_.memory.Set<uint64_t>(heap.list + field, value);
    FindMethod(kRangeCode + 0x48, ProbeFailure::kContradiction);
    runtime_.memory.Set<uint64_t>(heap.list + field, before);
  };
  refused(at.map_base, kRangeCode + 1);
  refused(at.start, kRangeCode + kRangeBytes + 1);
  refused(at.end, kRangeCode - 1);
  refused(at.end, ~uint64_t{0});
  EXPECT_TRUE(FindMethod(kRangeCode + 0x48).has_value());
  Reopen();
  // The part that is in use is smaller than the section.
  runtime_.memory.Set<uint64_t>(heap.list + at.end, kRangeCode + 0x30);
  EXPECT_EQ(FindMethod(kRangeCode + 0x48), std::nullopt);
}

}  // namespace
}  // namespace clrsampler
