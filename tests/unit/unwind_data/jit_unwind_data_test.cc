#include "unwind_data/jit_unwind_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "unit/clr/memory/fake_runtime.h"
#include "unit/formats/unwind/code_bytes.h"
#include "unwind_data/managed_functions.h"
#include "unwind_data/process_code.h"

namespace clrsampler {
namespace {

constexpr uint64_t kPermanent = 0x7F12'3456'0000, kTransient = 0x7F12'3460'0000, kStubs = 0x7F12'3480'0000,
                   kHeapBytes = 0x4000;

class JitUnwindDataTest : public testing::TestWithParam<uint32_t> {
 protected:
  void SetUp() override {
    for (const uint64_t start : {kPermanent, kTransient, kStubs}) {
      Mapping heap;
      heap.start = start;
      heap.end = start + kHeapBytes;
      heap.kind = MappingKind::kJitMemory;
      heap.path = "/memfd:doublemapper (deleted)";
      process_.mappings.Insert(heap);
    }
    permanent_ = &fake_.AddHeap(kPermanent, kHeapBytes);
    transient_ = &fake_.AddHeap(kTransient, kHeapBytes, /*collectible=*/true);
    fake_.AddStubs({kStubs, kStubs + 0x1000}, 5);
    auto runtime = fake_.Attach();
    ASSERT_TRUE(runtime.ok()) << runtime.status();
    runtime_ = *std::move(runtime);
    clock_.Set({1000});
  }

  // A method whose parts stand one behind the other; what was there before is gone.
  void Emit(FakeRuntime::Heap& heap, uint64_t offset, const std::vector<CodeBytes>& parts,
            uint64_t method_desc = 0x1234560) {
    std::vector<std::byte> code;
    std::vector<std::array<uint32_t, 3>> table;
    uint32_t unwind = static_cast<uint32_t>(offset) + 0x1000;
    for (const CodeBytes& part : parts) {
      const std::vector<std::byte> bytes = Hex(part.code), info = Hex(part.unwind);
      const auto begin = static_cast<uint32_t>(offset + code.size());
      code.insert(code.end(), bytes.begin(), bytes.end());
      table.push_back({begin, static_cast<uint32_t>(offset + code.size()), unwind});
      fake_.memory.SetBytes(heap.range.begin + unwind, info);
      unwind += 0x40;
    }
    for (const auto& method : heap.nibbles.methods) {
      if (method.start == offset) {
        heap.nibbles = NibbleHeap(fake_.layout.nibble_map, kHeapBytes);
        break;
      }
    }
    // The same header again, as the runtime's allocator would give it.
    uint64_t& header = headers_[heap.range.begin + offset];
    const uint64_t fresh = fake_.AddCode(heap, offset, static_cast<uint32_t>(code.size()), method_desc);
    if (header == 0) header = fresh;
    fake_.SetHeader(heap, offset, header);
    fake_.memory.Set<uint64_t>(header + fake_.layout.code_header.method_desc, method_desc);
    fake_.memory.Set<uint32_t>(header + fake_.layout.code_header.unwind_count, static_cast<uint32_t>(table.size()));
    fake_.memory.SetBytes(header + fake_.layout.code_header.unwinds, std::as_bytes(std::span(table)));
    fake_.memory.SetBytes(heap.range.begin + offset, code);
  }
  void Free(FakeRuntime::Heap& heap, uint64_t offset) {
    heap.nibbles = NibbleHeap(fake_.layout.nibble_map, kHeapBytes);
    fake_.WriteNibbles(heap);
    fake_.SetHeader(heap, offset, 0);
  }
  CodeAt At(uint64_t address, uint64_t time_ns) {
    return data_.At({process_, process_.mappings.Find(address), address, address, {time_ns}});
  }
  void Observe(uint64_t at_ns, std::vector<uint64_t> addresses, std::vector<wire_code_snapshot> snapshots = {}) {
    clock_.Set({at_ns});
    data_.Observe(process_, {addresses, snapshots, {at_ns}});
  }
  wire_code_snapshot SnapshotOf(uint64_t offset) {
    wire_code_snapshot snapshot{};
    snapshot.address = kTransient + offset + 5;
    snapshot.start = kTransient + offset;
    snapshot.header = fake_.memory.Value<uint64_t>(snapshot.start - 8).value_or(0);
    fake_.memory.Read(snapshot.header, std::as_writable_bytes(std::span(snapshot.identity)));
    return snapshot;
  }

  FakeRuntime fake_{GetParam()};
  FakeRuntime::Heap* permanent_ = nullptr;
  FakeRuntime::Heap* transient_ = nullptr;
  std::map<uint64_t, uint64_t> headers_;
  std::unique_ptr<RuntimeMemory> runtime_;
  FakeClock clock_;
  Process process_{ProcessKey{1, 1}, TargetFiles("/proc", static_cast<uint32_t>(getpid()))};
  JitUnwindData data_{[this](ProcessKey) { return runtime_.get(); }, clock_};
};

INSTANTIATE_TEST_SUITE_P(Versions, JitUnwindDataTest, testing::Values(8, 9, 10));

TEST_P(JitUnwindDataTest, AMethodAndItsFunclet) {
  Emit(*permanent_, 0x100, {kFramed, kFunclet8});
  const CodeAt body = At(kPermanent + 0x10F, 5), funclet = At(kPermanent + 0x100 + 21 + 14, 99999);
  ASSERT_EQ(body.kind, CodeKind::kManaged);
  ASSERT_EQ(funclet.kind, CodeKind::kManaged);
  EXPECT_EQ(body.managed->begin, kPermanent + 0x100);
  EXPECT_EQ(body.managed->end, kPermanent + 0x100 + 21);
  EXPECT_EQ(body.managed->unwind, *UnwindInfo::Parse(Hex(kFramed.unwind)));
  EXPECT_TRUE(std::equal(body.managed->code.begin(), body.managed->code.end(), Hex(kFramed.code).begin()));
  EXPECT_FALSE(body.managed->funclet);
  EXPECT_TRUE(funclet.managed->funclet);
  EXPECT_EQ(funclet.managed->begin, body.managed->end);
  EXPECT_EQ(funclet.managed->method_begin, body.managed->begin);
  EXPECT_EQ(funclet.managed->unwind, *UnwindInfo::Parse(Hex(kFunclet8.unwind)));
  EXPECT_TRUE(std::equal(funclet.managed->code.begin(), funclet.managed->code.end(), Hex(kFunclet8.code).begin()));
  EXPECT_TRUE(body.permanent);
  EXPECT_GE(data_.heap_bytes(), Hex(kFramed.code).size() + 2 * sizeof(ManagedFunction));
  // It is read once, and holds when the process is gone.
  const uint64_t reads = fake_.memory.reads;
  process_.exited = {4000};
  EXPECT_EQ(At(kPermanent + 0x110, 1).managed, body.managed);
  EXPECT_EQ(fake_.memory.reads, reads);
  EXPECT_EQ(data_.counters().methods, 1u);
  process_.ends->Announce(process_.key);
  EXPECT_EQ(data_.heap_bytes(), 0u);
  EXPECT_EQ(At(kPermanent + 0x110, 1).kind, CodeKind::kUnknown);
}

TEST_P(JitUnwindDataTest, OnStackReplacementIsKnownByItsUnwindData) {
  Emit(*permanent_, 0x100, {kOsr, kFunclet10});
  const CodeAt body = At(kPermanent + 0x110, 5), funclet = At(kPermanent + 0x100 + 64 + 5, 5);
  ASSERT_EQ(funclet.kind, CodeKind::kManaged);
  EXPECT_TRUE(body.managed->osr);
  EXPECT_EQ(body.managed->osr_frame_bytes, 120u);
  EXPECT_TRUE(funclet.managed->osr);
  EXPECT_EQ(funclet.managed->osr_frame_bytes, 120u);
  EXPECT_EQ(data_.counters().osr, 1u);
}

TEST_P(JitUnwindDataTest, StubsHaveNoFrame) {
  EXPECT_EQ(At(kStubs + 0x10, 5).kind, CodeKind::kStub);
  fake_.AddCode(*permanent_, 0x200, 0x20, 0);
  fake_.SetHeader(*permanent_, 0x200, 6);  // a stub among methods
  EXPECT_EQ(At(kPermanent + 0x208, 5).kind, CodeKind::kStub);
  process_.exited = {4000};
  EXPECT_EQ(At(kPermanent + 0x208, 5).kind, CodeKind::kStub);
  EXPECT_EQ(At(kPermanent + 0x209, 5).kind, CodeKind::kUnknown);  // nobody looked in time
}

TEST_P(JitUnwindDataTest, OnlyWhatNoRangeClaimsIsAHelperOfTheRuntime) {
  EXPECT_EQ(At(kStubs + 0x2000, 5).kind, CodeKind::kStub);         // behind the range
  EXPECT_EQ(At(kPermanent + 0x3000, 5).kind, CodeKind::kUnknown);  // a heap, but no method
  EXPECT_EQ(At(0x1000, 5).kind, CodeKind::kUnknown);
  runtime_.reset();
  EXPECT_EQ(At(kStubs + 0x2008, 5).kind, CodeKind::kUnknown);
}

TEST_P(JitUnwindDataTest, TransientCodeHoldsBetweenTwoReadingsThatAgree) {
  Emit(*transient_, 0x100, {kFramed});
  Observe(2000, {kTransient + 0x10F});
  Observe(3000, {kTransient + 0x10F});
  EXPECT_EQ(At(kTransient + 0x10F, 2500).kind, CodeKind::kManaged);
  EXPECT_FALSE(At(kTransient + 0x10F, 2500).permanent) << "another one may stand there a moment later";
  Free(*transient_, 0x100);
  clock_.Set({4000});
  EXPECT_EQ(At(kTransient + 0x10F, 2500).kind, CodeKind::kManaged);
  EXPECT_EQ(At(kTransient + 0x10F, 1999).kind, CodeKind::kUnknown);
  EXPECT_EQ(At(kTransient + 0x10F, 3001).kind, CodeKind::kUnknown);
  EXPECT_EQ(data_.counters().without_snapshot, 2u);
  // Another one takes its place; each holds at its own time.
  Emit(*transient_, 0x100, {kFrameless}, 0x7654320);
  Observe(5000, {kTransient + 0x10F});
  Observe(6000, {kTransient + 0x10F});
  EXPECT_EQ(At(kTransient + 0x10F, 2500).managed->unwind, *UnwindInfo::Parse(Hex(kFramed.unwind)));
  EXPECT_EQ(At(kTransient + 0x10F, 5500).managed->unwind, *UnwindInfo::Parse(Hex(kFrameless.unwind)));
  EXPECT_EQ(At(kTransient + 0x10F, 4000).kind, CodeKind::kUnknown);
}

TEST_P(JitUnwindDataTest, TheSameHeaderOverOtherCodeIsNotTheSame) {
  CodeBytes other = kFramed;
  other.unwind = "1909030009d00330015000";  // other registers
  Emit(*transient_, 0x100, {kFramed});
  Observe(2000, {kTransient + 0x10F});
  Emit(*transient_, 0x100, {other});
  Observe(3000, {kTransient + 0x10F});
  EXPECT_EQ(At(kTransient + 0x10F, 2500).kind, CodeKind::kUnknown);
}

TEST_P(JitUnwindDataTest, TheSamplerSawIt) {
  Emit(*transient_, 0x100, {kFramed});
  // Before it was read, and after.
  Observe(2000, {}, {SnapshotOf(0x100)});
  Observe(3000, {kTransient + 0x10F});
  Observe(4000, {}, {SnapshotOf(0x100)});
  clock_.Set({5000});
  for (const uint64_t time : {2000, 2500, 3000, 3500, 4000}) {
    EXPECT_EQ(At(kTransient + 0x10F, time).kind, CodeKind::kManaged) << time;
  }
  Free(*transient_, 0x100);
  EXPECT_EQ(At(kTransient + 0x10F, 1999).kind, CodeKind::kUnknown);
  EXPECT_EQ(At(kTransient + 0x10F, 4001).kind, CodeKind::kUnknown);
}

TEST_P(JitUnwindDataTest, AMethodThatComesBackWasNotThereWhenAnotherOneWas) {
  Emit(*transient_, 0x100, {kFrameless}, 0x7654320);
  const wire_code_snapshot other = SnapshotOf(0x100);
  Emit(*transient_, 0x100, {kFramed});
  Observe(2000, {}, {SnapshotOf(0x100)});
  Observe(3000, {}, {other});
  Observe(4000, {kTransient + 0x105});  // the first one again
  Free(*transient_, 0x100);
  clock_.Set({5000});
  EXPECT_EQ(At(kTransient + 0x105, 3000).kind, CodeKind::kUnknown);
  EXPECT_EQ(At(kTransient + 0x105, 4000).kind, CodeKind::kManaged);
}

TEST_P(JitUnwindDataTest, AMethodThatWasSeenInBetweenIsNotTheOneAround) {
  Emit(*transient_, 0x100, {kFrameless}, 0x7654320);
  const wire_code_snapshot other = SnapshotOf(0x100);
  Emit(*transient_, 0x100, {kFramed});
  Observe(2000, {kTransient + 0x105});
  Observe(4000, {kTransient + 0x105});
  Free(*transient_, 0x100);
  Observe(3000, {}, {other});  // it arrives late
  EXPECT_EQ(At(kTransient + 0x105, 2999).kind, CodeKind::kManaged);
  EXPECT_EQ(At(kTransient + 0x105, 3000).kind, CodeKind::kUnknown);
}

TEST_P(JitUnwindDataTest, WhatTheSamplerCopiedNeedsNoReading) {
  Emit(*transient_, 0x100, {kFramed});
  wire_code_snapshot snapshot = SnapshotOf(0x100);
  const std::vector<std::byte> unwind = Hex(kFramed.unwind), code = Hex(kFramed.code);
  std::memcpy(snapshot.unwind, unwind.data(), std::min(unwind.size(), sizeof snapshot.unwind));
  std::memcpy(snapshot.code, code.data() + 5, std::min(code.size() - 5, sizeof snapshot.code));
  Free(*transient_, 0x100);
  Observe(2000, {kTransient + 0x105}, {snapshot});
  const CodeAt at = At(kTransient + 0x105, 2000);
  ASSERT_EQ(at.kind, CodeKind::kManaged);
  EXPECT_EQ(at.managed->begin, kTransient + 0x100);
  EXPECT_EQ(at.managed->end, kTransient + 0x100 + code.size());
  EXPECT_EQ(at.managed->unwind, *UnwindInfo::Parse(unwind));
  EXPECT_EQ(at.managed->code[5], code[5]);
  // For that moment, and for nothing else.
  EXPECT_EQ(At(kTransient + 0x105, 2001).kind, CodeKind::kUnknown);
  EXPECT_EQ(At(kTransient + 0x100 + code.size(), 2000).kind, CodeKind::kUnknown);

  // An address behind the body: a funclet, of which nothing was copied.
  snapshot.address = kTransient + 0x100 + code.size();
  Observe(3000, {}, {snapshot});
  EXPECT_EQ(At(kTransient + 0x105, 3000).kind, CodeKind::kUnknown);
  // Damaged.
  snapshot.address = kTransient + 0x105;
  snapshot.unwind[0] = 0xFF;
  Observe(4000, {}, {snapshot});
  EXPECT_EQ(At(kTransient + 0x105, 4000).kind, CodeKind::kUnknown);
}

TEST_P(JitUnwindDataTest, WhatTheSamplerCopiedIsBounded) {
  Emit(*transient_, 0x100, {kFramed});
  wire_code_snapshot snapshot = SnapshotOf(0x100);
  const std::vector<std::byte> unwind = Hex(kFramed.unwind), code = Hex(kFramed.code);
  std::memcpy(snapshot.unwind, unwind.data(), std::min(unwind.size(), sizeof snapshot.unwind));
  Free(*transient_, 0x100);
  constexpr uint64_t kMoments = 20'000;
  for (uint64_t time = 2000; time < 2000 + kMoments; ++time) Observe(time, {}, {snapshot});
  EXPECT_LT(data_.heap_bytes(), size_t{4} << 20);
  EXPECT_GT(data_.heap_bytes(), size_t{1} << 20) << "they are counted";
  EXPECT_EQ(At(kTransient + 0x105, 2000 + kMoments - 1).kind, CodeKind::kManaged);
  EXPECT_EQ(At(kTransient + 0x105, 2000).kind, CodeKind::kUnknown);
}

TEST_P(JitUnwindDataTest, WhatIsReplacedWhileItIsReadIsNotTaken) {
  Emit(*transient_, 0x100, {kFramed});
  const uint64_t unwind = kTransient + 0x1100;
  fake_.memory.before_read = [&](uint64_t address) {
    if (address == unwind) fake_.SetHeader(*transient_, 0x100, headers_[kTransient + 0x100] + 8);
  };
  Observe(2000, {kTransient + 0x10F});
  EXPECT_EQ(data_.counters().failed, 1u);
  EXPECT_EQ(data_.counters().methods, 0u);
}

TEST_P(JitUnwindDataTest, TablesThatDoNotFitTogetherAreNotTaken) {
  const uint32_t unwinds = fake_.layout.code_header.unwinds;
  Emit(*permanent_, 0x100, {kFramed, kFunclet8});
  const uint64_t header = headers_[kPermanent + 0x100];
  const auto funclet_begin = *fake_.memory.Value<uint32_t>(header + unwinds + 12);
  fake_.memory.Set<uint32_t>(header + unwinds + 12, 0x100);  // begins in the body
  EXPECT_EQ(At(kPermanent + 0x10F, 5).kind, CodeKind::kUnknown);
  fake_.memory.Set<uint32_t>(header + unwinds + 12, funclet_begin);
  fake_.memory.Set<uint32_t>(header + unwinds + 20, 0x7FFFFFFF);  // unwind data that is not there
  EXPECT_EQ(At(kPermanent + 0x10F, 5).kind, CodeKind::kUnknown);
  fake_.memory.Set<uint32_t>(header + unwinds + 20, 0x1100);
  fake_.memory.Set<uint8_t>(kPermanent + 0x1100, 0x1A);  // of another version
  EXPECT_EQ(At(kPermanent + 0x10F, 5).kind, CodeKind::kUnknown);
  EXPECT_EQ(data_.counters().failed, 3u);
}

TEST_P(JitUnwindDataTest, AnExecutedProgramHasItsOwnCode) {
  Emit(*permanent_, 0x100, {kFramed});
  EXPECT_EQ(At(kPermanent + 0x10F, 5).kind, CodeKind::kManaged);
  ++process_.exec_count;
  process_.exec_announced = {9};
  EXPECT_EQ(At(kPermanent + 0x10F, 10).kind, CodeKind::kUnknown);
}

// The answers that ProcessCode remembers by address.
TEST_P(JitUnwindDataTest, OnlyPermanentAnswersAreRemembered) {
  ImageFiles images;
  FrameTable frames;
  R2rMethods methods(&images, &frames, NameStyle::kRaw);
  R2rUnwindData r2r(&methods);
  ElfUnwindData elf(images);
  ProcessCode code(data_, r2r, elf, nullptr, nullptr);
  Emit(*permanent_, 0x100, {kFramed});
  // Its own source of code hears of another table, so that it can be made to forget alone.
  Observe(1, {kPermanent + 0x10F});
  const std::shared_ptr<ProgramEnds> of_data = std::exchange(process_.ends, std::make_shared<ProgramEnds>());
  EXPECT_EQ(code.For(process_, {5}).At(kPermanent + 0x10F).kind, CodeKind::kManaged);
  const size_t bytes = code.heap_bytes();
  EXPECT_GT(bytes, data_.heap_bytes());
  // The heap grows: another mapping, the same code.
  Mapping heap = *process_.mappings.Find(kPermanent);
  heap.end += 0x1000;
  process_.mappings.Insert(heap);
  of_data->Announce(process_.key);
  process_.exited = {4000};
  EXPECT_EQ(code.For(process_, {6}).At(kPermanent + 0x10F).kind, CodeKind::kManaged) << "remembered";
  process_.exited = MonotonicTime::Max();

  Emit(*transient_, 0x100, {kFramed});
  Observe(2000, {kTransient + 0x10F});
  Observe(3000, {kTransient + 0x10F});
  EXPECT_EQ(code.For(process_, {2500}).At(kTransient + 0x10F).kind, CodeKind::kManaged);
  Free(*transient_, 0x100);
  clock_.Set({4000});
  process_.exited = {4000};
  EXPECT_EQ(code.For(process_, {5000}).At(kTransient + 0x10F).managed, nullptr) << "not remembered";

  // Something else is mapped there by now.
  heap.kind = MappingKind::kOther;
  process_.mappings.Insert(heap);
  EXPECT_EQ(code.For(process_, {6000}).At(kPermanent + 0x10F).kind, CodeKind::kUnknown);
  process_.ends->Announce(process_.key);
  of_data->Announce(process_.key);
  EXPECT_EQ(code.heap_bytes(), 0u);
}

}  // namespace
}  // namespace clrsampler
