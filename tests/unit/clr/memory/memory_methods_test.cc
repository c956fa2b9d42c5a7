#include "clr/memory/memory_methods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "os/clock.h"
#include "os/file_io.h"
#include "test_paths.h"
#include "unit/clr/memory/fake_runtime.h"
#include "unit/formats/unwind/code_bytes.h"
#include "unit/process/mapping_of_file.h"
#include "unit/symbol_server/fake_symbol_files.h"

namespace clrsampler {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr uint64_t kPermanent = 0x7F12'3456'0000, kTransient = 0x7F12'3460'0000, kHeapBytes = 0x4000;
constexpr char kNoSnapshot[] = "[jit: a short-lived method that was not seen in time]";

class Borrowed : public MemoryReader {
 public:
  explicit Borrowed(MemoryReader& memory) : memory_(memory) {}
  bool Read(uint64_t address, std::span<std::byte> into) override { return memory_.Read(address, into); }

 private:
  MemoryReader& memory_;
};

// A process whose runtime's image is fake_coreclr.c and whose memory is a FakeRuntime's.
class MemoryMethodsTest : public testing::Test {
 protected:
  virtual std::string Image() { return RuntimeFixture("libfake_coreclr.so"); }
  virtual uint16_t Major() const { return 8; }
  void SetUp() override {
    const std::string fake_coreclr = Image();
    process_.mappings.Insert(MappingOfFile(fake_coreclr, FakeRuntime::kImage, FakeRuntime::kImageBytes));
    for (const uint64_t start : {kPermanent, kTransient}) {
      Mapping heap;
      heap.start = start;
      heap.end = start + kHeapBytes;
      heap.kind = MappingKind::kJitMemory;
      process_.mappings.Insert(heap);
    }
    const auto found = discovery_.Find(process_);
    ASSERT_TRUE(found.has_value());
    ASSERT_EQ(found->version.major, Major());
    const uint64_t dac_table = found->AddressOf("g_dacTable").value_or(0);
    ASSERT_TRUE(fake_.image().contains(dac_table));
    fake_.memory.Set<uint64_t>(dac_table, FakeRuntime::kRangeMap);

    permanent_ = &fake_.AddHeap(kPermanent, kHeapBytes);
    fake_.SetOwner(*permanent_, 2);
    transient_ = &fake_.AddHeap(kTransient, kHeapBytes, /*collectible=*/true);
    MetadataBuilder builder("app");
    builder.Type("", "<Module>");
    builder.Type("Ns", "App");
    builder.Method("Run");
    type_ = fake_.AddType(fake_.AddModule(builder.Build()), 2);
    clock_.Set({1000});
  }

  MemoryMethodsOptions Options() {
    MemoryMethodsOptions options;
    options.names = NameStyle::kRaw;
    options.open_memory = [this](const Process&) -> absl::StatusOr<std::unique_ptr<MemoryReader>> {
      ++opened_;
      if (!open_.ok()) return open_;
      return std::make_unique<Borrowed>(fake_.memory);
    };
    options.transient_code = [this](const Process&, const wire_transient_code& code, auto heaps) {
      told_.push_back({code, {heaps.begin(), heaps.end()}});
    };
    return options;
  }
  // A page of the runtime's own, as W^X makes them.
  void MapPage(uint64_t start) {
    Mapping mapping;
    mapping.start = start;
    mapping.end = start + 0x1000;
    mapping.kind = MappingKind::kJitMemory;
    mapping.path = "/memfd:doublemapper";
    process_.mappings.Insert(mapping);
  }
  void Observe(uint64_t at_ns, std::vector<uint64_t> addresses, std::vector<wire_code_snapshot> snapshots = {}) {
    clock_.Set({at_ns});
    methods_.Observe(process_, {addresses, snapshots, {at_ns}});
  }
  std::string NameAt(uint64_t address, uint64_t time_ns) {
    const auto found = methods_.Resolve({process_, process_.mappings.Find(address), address + 1, address, {time_ns}});
    if (!found) return "(nobody's)";
    EXPECT_LE(found->from.ns, time_ns);
    EXPECT_GE(found->until.ns, time_ns);
    return frames_.at(found->frame).text;
  }
  // A dynamic method at an address; what was there before is gone.
  void Emit(uint64_t offset, const std::string& name) {
    const uint64_t desc = fake_.AddDynamicMethod(type_, name);
    const bool there = std::any_of(transient_->nibbles.methods.begin(), transient_->nibbles.methods.end(),
                                   [&](const auto& method) { return method.start == offset; });
    if (there) transient_->nibbles = NibbleHeap(fake_.layout.nibble_map, kHeapBytes);
    fake_.AddCode(*transient_, offset, 0x80, desc);
  }
  void Free(uint64_t offset) {
    transient_->nibbles = NibbleHeap(fake_.layout.nibble_map, kHeapBytes);
    fake_.WriteNibbles(*transient_);
    fake_.SetHeader(*transient_, offset, 0);
  }
  // The snapshot that the sampler would take now.
  wire_code_snapshot SnapshotOf(uint64_t offset, const std::string& name) {
    wire_code_snapshot snapshot{};
    snapshot.address = kTransient + offset + 5;
    snapshot.start = kTransient + offset;
    snapshot.header = fake_.memory.Value<uint64_t>(snapshot.start - 8).value_or(0);
    fake_.memory.Read(snapshot.header, std::as_writable_bytes(std::span(snapshot.identity)));
    std::strncpy(snapshot.name, name.c_str(), sizeof snapshot.name - 1);
    return snapshot;
  }

  FakeRuntime fake_{8};
  FakeRuntime::Heap* permanent_ = nullptr;
  FakeRuntime::Heap* transient_ = nullptr;
  uint64_t type_ = 0;
  int opened_ = 0;
  absl::Status open_;
  struct Told {
    wire_transient_code code;
    std::vector<wire_transient_heap> heaps;
  };
  std::vector<Told> told_;
  FakeClock clock_;
  ImageFiles images_;
  FrameTable frames_;
  Notices notices_;
  RuntimeDiscovery discovery_{images_, RuntimeDiscovery::CacheBy::kFile};
  Process process_{ProcessKey{1, 1}, TargetFiles("/proc", static_cast<uint32_t>(getpid()))};
  MemoryMethods methods_{Options(), discovery_, images_, frames_, notices_, clock_};
};

TEST_F(MemoryMethodsTest, APermanentMethodWasAlwaysThere) {
  fake_.AddCode(*permanent_, 0x100, 0x80, fake_.AddMethod(type_, 1));
  Observe(2000, {kPermanent + 0x110});
  for (const uint64_t time : {1, 1500, 2000, 9000})
    EXPECT_THAT(NameAt(kPermanent + 0x17F, time), HasSubstr("Ns.App::Run"));
  const uint64_t reads = fake_.memory.reads;
  Observe(3000, {kPermanent + 0x110});
  EXPECT_THAT(NameAt(kPermanent + 0x110, 3000), HasSubstr("Ns.App::Run"));
  EXPECT_EQ(fake_.memory.reads, reads);
  EXPECT_EQ(opened_, 1);
  // Also when it can't be read any more.
  process_.exited = {4000};
  fake_.memory = FakeMemory();
  EXPECT_THAT(NameAt(kPermanent + 0x110, 3500), HasSubstr("Ns.App::Run"));
  EXPECT_EQ(methods_.counters().attached, 1u);
}

TEST_F(MemoryMethodsTest, AMethodThatWasRefusedIsNamedWhenThereIsRoom) {
  fake_.AddCode(*permanent_, 0x100, 0x80, fake_.AddMethod(type_, 1));
  FrameRoom none;
  frames_.SetRoom(&none);
  Observe(2000, {kPermanent + 0x110});
  EXPECT_EQ(NameAt(kPermanent + 0x110, 2000), "[function of a program with too many names]");
  const uint64_t reads = fake_.memory.reads;
  Observe(2500, {kPermanent + 0x110});
  EXPECT_EQ(fake_.memory.reads, reads) << "it is not read in vain";
  frames_.SetRoom(nullptr);
  Observe(3000, {kPermanent + 0x110});
  EXPECT_THAT(NameAt(kPermanent + 0x110, 2000), HasSubstr("Ns.App::Run"));
}

// Two methods of one shape follow each other, and neither has a name that could tell them apart.
TEST_F(MemoryMethodsTest, ARefusedMethodIsNotTheNextOneOfItsShape) {
  FrameRoom none;
  frames_.SetRoom(&none);
  Emit(0x100, "Emitted1");
  Observe(2000, {kTransient + 0x110}, {SnapshotOf(0x100, "Emitted1")});
  Emit(0x100, "Emitted2");
  Observe(3000, {kTransient + 0x110});
  frames_.SetRoom(nullptr);
  Observe(4000, {kTransient + 0x110}, {SnapshotOf(0x100, "Emitted2")});
  EXPECT_THAT(NameAt(kTransient + 0x110, 4000), HasSubstr("Emitted2"));
  EXPECT_THAT(NameAt(kTransient + 0x110, 3000), Not(HasSubstr("Emitted1")));
  EXPECT_THAT(NameAt(kTransient + 0x110, 2000), Not(HasSubstr("Emitted2")));
}

TEST_F(MemoryMethodsTest, TypesNeedRoom) {
  Observe(2000, {kPermanent + 0x10});
  FrameRoom none;
  frames_.SetRoom(&none);
  const std::optional<FrameId> refused = methods_.TypeFrame(process_, type_);
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(frames_.at(*refused).text, "[type of a program with too many names]");
  frames_.SetRoom(nullptr);
  const std::optional<FrameId> named = methods_.TypeFrame(process_, type_);
  ASSERT_TRUE(named.has_value());
  EXPECT_THAT(frames_.at(*named).text, HasSubstr("Ns.App"));
}

// A former answer that is kept has no line, so it must be asked for again.
TEST_F(MemoryMethodsTest, APdbThatComesMakesFormerAnswersOld) {
  FakeSymbolFiles served;
  AssemblyPdbs pdbs({}, images_, notices_, &served);
  MemoryMethodsOptions options = Options();
  options.pdbs = &pdbs;
  MemoryMethods methods(options, discovery_, images_, frames_, notices_, clock_);
  const uint64_t address = kPermanent + 0x110;
  fake_.AddCode(*permanent_, 0x100, 0x80, fake_.AddMethod(type_, 1));
  methods.Observe(process_, {std::span(&address, 1), {}, {2000}});
  const uint64_t before = methods.Generation(process_.key);
  EXPECT_EQ(methods.Generation(process_.key), before);
  ++served.generations;
  EXPECT_EQ(methods.Generation(process_.key), before + 1);
}

// Nothing of the runtime tells of it, so its instructions must. Code that they do not know has no name.
TEST_F(MemoryMethodsTest, ACopiedWriteBarrierIsNamedAndNothingElseThatNoRangeClaims) {
  constexpr uint64_t kCopies = 0x7F12'3470'0000, kCopy = kCopies + 0x7f0;
  MapPage(kCopies);
  std::vector<uint8_t> page(0x1000, 0xcc);
  // That of fake_coreclr.c, with values.
  const std::array<uint8_t, 29> code = {0x48, 0x89, 0x37, 0x48, 0xb8, 1,    2,    3,    4,    5,
                                        6,    7,    8,    0x48, 0xc1, 0xef, 0x19, 0x80, 0x3c, 0x07,
                                        0x00, 0x75, 0x01, 0xc3, 0xc6, 0x04, 0x07, 0xff, 0xc3};
  std::copy(code.begin(), code.end(), page.begin() + (kCopy - kCopies));
  fake_.memory.SetBytes(kCopies, std::as_bytes(std::span(page)));
  Observe(2000, {kCopy + 3});
  EXPECT_EQ(NameAt(kCopy + 3, 2000), "stub WriteBarrier");
  EXPECT_EQ(NameAt(kCopy + code.size() - 1, 1500), "stub WriteBarrier");
  EXPECT_EQ(NameAt(kCopy - 1, 2000), "[jit: in none of the runtime's code ranges]");
  EXPECT_EQ(NameAt(kCopy + code.size(), 2000), "[jit: in none of the runtime's code ranges]");
  process_.exited = {4000};
  EXPECT_EQ(NameAt(kCopies, 3500), "[jit: the process ended before its memory could be read]");
}

// A stub in a heap without a range: named from the sample after which it was read to the last time that it was, also
// when the process is gone, and not beyond.
TEST_F(MemoryMethodsTest, AStubWithoutARangeCountsForTheTimeInWhichItWasRead) {
  constexpr uint64_t kStubs = 0x7F12'3480'0000;
  MapPage(kStubs);
  const auto fill = [&](bool with_stub) {
    std::vector<uint8_t> page(0x1000, 0xcc);
    // Counts calls; its data is 0x4000 further on.
    const std::array<uint8_t, 24> stub = {0x48, 0x8b, 0x05, 0xf9, 0x3f, 0x00, 0x00, 0x66, 0xff, 0x08, 0x74, 0x06,
                                          0xff, 0x25, 0xf6, 0x3f, 0x00, 0x00, 0xff, 0x25, 0xf8, 0x3f, 0x00, 0x00};
    if (with_stub) std::copy(stub.begin(), stub.end(), page.begin() + 48);
    fake_.memory.SetBytes(kStubs, std::as_bytes(std::span(page)));
  };
  fill(true);
  Observe(2000, {kStubs + 50});
  Observe(3000, {kStubs + 50});
  fill(false);
  EXPECT_EQ(NameAt(kStubs + 50, 2000), "stub CallCountingStub");
  EXPECT_EQ(NameAt(kStubs + 50, 2500), "stub CallCountingStub");
  EXPECT_EQ(NameAt(kStubs + 50, 1900), "[jit: in none of the runtime's code ranges]");
  process_.exited = {4000};
  EXPECT_EQ(NameAt(kStubs + 50, 2500), "stub CallCountingStub");
  EXPECT_EQ(NameAt(kStubs + 50, 3500), "[jit: the process ended before its memory could be read]");
}

TEST_F(MemoryMethodsTest, AStubThatMayBeFreedIsNamedByTheReadingAfterTheSample) {
  constexpr uint64_t kStubs = 0x7F12'3480'0000;
  fake_.AddStubs({kStubs, kStubs + 0x1000}, 4, /*collectible=*/true);
  MapPage(kStubs);
  Observe(2000, {kStubs + 8});
  fake_.memory = FakeMemory();
  EXPECT_EQ(NameAt(kStubs + 8, 2000), "stub StubPrecode");
  EXPECT_NE(NameAt(kStubs + 8, 1999), "stub StubPrecode");
}

// The compiler's hook is hit before the runtime publishes the method. Until then a stub seems to go on there.
TEST_F(MemoryMethodsTest, WhatWasCompiledIsNamedByWhatBeginsThere) {
  constexpr uint64_t kDynamicHelper = 3;
  fake_.SetHeader(*permanent_, 0x100, kDynamicHelper);
  permanent_->nibbles.Add(0x100, 0x20);
  fake_.WriteNibbles(*permanent_);
  const uint64_t entry = kPermanent + 0x200;
  const auto observe = [&](uint64_t at_ns) {
    clock_.Set({at_ns});
    const uint64_t addresses[] = {entry};
    methods_.Observe(process_, {addresses, {}, {at_ns}, true});
  };
  const auto name_at = [&](uint64_t time_ns, uint64_t method_desc = 0) {
    const FrameQuery query{process_, process_.mappings.Find(entry), entry, entry, {time_ns}, true, method_desc};
    const auto found = methods_.Resolve(query);
    return found ? frames_.at(found->frame).text : "(nobody's)";
  };
  observe(2000);
  EXPECT_EQ(name_at(2000), "[jit: the runtime has not published the method yet]");
  const uint64_t method_desc = fake_.AddMethod(type_, 1);
  EXPECT_THAT(name_at(2000, method_desc), HasSubstr("Ns.App::Run"));  // the compiler's word
  EXPECT_EQ(name_at(2000, method_desc + 8), "[jit: the runtime has not published the method yet]");
  EXPECT_THAT(NameAt(entry, 2000), HasSubstr("DynamicHelper"));  // the runtime's word for an address of a sample
  fake_.AddCode(*permanent_, 0x200, 0x80, method_desc);
  observe(3000);
  EXPECT_THAT(name_at(2000), HasSubstr("Ns.App::Run"));
  EXPECT_THAT(NameAt(entry, 2500), HasSubstr("Ns.App::Run"));
}

TEST_F(MemoryMethodsTest, ATransientMethodThatNobodySawHasNoName) {
  Emit(0x100, "Emitted1");
  Observe(1500, {});  // attached
  clock_.Set({2000});
  EXPECT_EQ(NameAt(kTransient + 0x110, 1800), kNoSnapshot);
  EXPECT_EQ(methods_.counters().without_snapshot, 1u);
  EXPECT_EQ(methods_.counters().transient, 1u);
}

TEST_F(MemoryMethodsTest, TwoReadingsThatAgreeNameTheTimeBetween) {
  Emit(0x100, "Emitted1");
  Observe(2000, {kTransient + 0x110});
  Observe(3000, {kTransient + 0x120});
  for (const uint64_t time : {2000, 2500, 3000}) EXPECT_THAT(NameAt(kTransient + 0x110, time), HasSubstr("Emitted1"));
  EXPECT_EQ(NameAt(kTransient + 0x110, 1999), kNoSnapshot);
  // Later than the last reading: it is looked at once more, and still there.
  clock_.Set({4000});
  EXPECT_THAT(NameAt(kTransient + 0x110, 3500), HasSubstr("Emitted1"));
}

TEST_F(MemoryMethodsTest, AReplacedMethodNamesOnlyItsOwnTimes) {
  Emit(0x100, "Emitted1");
  Observe(2000, {kTransient + 0x110});
  Emit(0x100, "Emitted2");
  Observe(3000, {kTransient + 0x110});
  EXPECT_THAT(NameAt(kTransient + 0x110, 2000), HasSubstr("Emitted1"));
  EXPECT_EQ(NameAt(kTransient + 0x110, 2500), kNoSnapshot);
  EXPECT_THAT(NameAt(kTransient + 0x110, 3000), HasSubstr("Emitted2"));
  EXPECT_EQ(methods_.counters().replaced, 1u);
}

TEST_F(MemoryMethodsTest, CodeOfAnAssemblyIsThereAsLongAsItsOwner) {
  Observe(1000, {kPermanent + 0x10});  // a permanent heap is known
  fake_.SetOwner(*transient_, 7);
  fake_.AddCode(*transient_, 0x100, 0x80, fake_.AddMethod(type_, 1));
  fake_.AddCode(*transient_, 0x200, 0x80, fake_.AddMethod(type_, 1));
  Observe(2000, {kTransient + 0x110});
  Observe(3000, {kTransient + 0x210});
  EXPECT_THAT(NameAt(kTransient + 0x210, 2500), HasSubstr("Ns.App::Run")) << "one reading of its own";
  EXPECT_EQ(NameAt(kTransient + 0x210, 1999), kNoSnapshot) << "the owner was not known then";
}

TEST_F(MemoryMethodsTest, TheOwnerOfAHeapIsKnownBeforeItsFirstSample) {
  fake_.SetOwner(*transient_, 7);
  fake_.AddCode(*transient_, 0x100, 0x80, fake_.AddMethod(type_, 1));
  fake_.AddCode(*transient_, 0x200, 0x80, fake_.AddMethod(type_, 1));
  clock_.Set({2000});
  methods_.Poll(process_, {2000});
  Observe(3000, {kTransient + 0x210});
  EXPECT_THAT(NameAt(kTransient + 0x210, 2001), HasSubstr("Ns.App::Run"));
  EXPECT_EQ(NameAt(kTransient + 0x210, 1999), kNoSnapshot) << "the owner was not known then";
}

TEST_F(MemoryMethodsTest, AHeapOfDynamicMethodsHasNoOwnerThatCounts) {
  fake_.SetOwner(*transient_, 7);
  Emit(0x100, "Emitted1");
  clock_.Set({2000});
  methods_.Poll(process_, {2000});
  // As no heap is in truth: were its owner known, this would be named.
  fake_.AddCode(*transient_, 0x200, 0x80, fake_.AddMethod(type_, 1));
  Observe(3000, {kTransient + 0x210});
  EXPECT_EQ(NameAt(kTransient + 0x210, 2500), kNoSnapshot);
}

TEST_F(MemoryMethodsTest, TheFirstCompilationInAHeapTellsItsOwner) {
  Observe(1000, {kPermanent + 0x10});  // a permanent heap is known
  Observe(1500, {});                   // attached
  fake_.SetOwner(*transient_, 7);
  const uint64_t method = fake_.AddMethod(type_, 1);
  clock_.Set({2000});
  methods_.NoteCompiled(process_, kTransient + 0x200, method, clock_.Now());
  fake_.AddCode(*transient_, 0x200, 0x80, method);
  Observe(3000, {kTransient + 0x210});
  EXPECT_THAT(NameAt(kTransient + 0x210, 2500), HasSubstr("Ns.App::Run"));
  EXPECT_EQ(NameAt(kTransient + 0x210, 1999), kNoSnapshot);
}

TEST_F(MemoryMethodsTest, ACompilationOfADynamicMethodTellsNoOwner) {
  Observe(1000, {kPermanent + 0x10});
  Observe(1500, {});
  fake_.SetOwner(*transient_, 7);
  clock_.Set({2000});
  methods_.NoteCompiled(process_, kTransient + 0x100, fake_.AddDynamicMethod(type_, "Emitted1"), clock_.Now());
  fake_.AddCode(*transient_, 0x200, 0x80, fake_.AddMethod(type_, 1));
  Observe(3000, {kTransient + 0x210});
  EXPECT_EQ(NameAt(kTransient + 0x210, 2500), kNoSnapshot);
}

TEST_F(MemoryMethodsTest, CodeOfAnAssemblyIsGoneWithItsOwner) {
  Observe(1000, {kPermanent + 0x10});
  fake_.SetOwner(*transient_, 7);
  fake_.AddCode(*transient_, 0x100, 0x80, fake_.AddMethod(type_, 1));
  fake_.AddCode(*transient_, 0x200, 0x80, fake_.AddMethod(type_, 1));
  Observe(2000, {kTransient + 0x110});
  fake_.SetOwner(*transient_, 8);
  Observe(3000, {kTransient + 0x210});
  EXPECT_EQ(NameAt(kTransient + 0x210, 2500), kNoSnapshot);
  EXPECT_THAT(NameAt(kTransient + 0x210, 3000), HasSubstr("Ns.App::Run"));
}

TEST_F(MemoryMethodsTest, TheOwnerOfAHeapTellsNothingOfDynamicMethods) {
  Observe(1000, {kPermanent + 0x10});
  fake_.SetOwner(*transient_, 7);
  Emit(0x100, "Emitted1");
  Observe(2000, {kTransient + 0x110});
  Emit(0x200, "Emitted2");
  Observe(3000, {kTransient + 0x210});
  EXPECT_EQ(NameAt(kTransient + 0x210, 2500), kNoSnapshot);
}

TEST_F(MemoryMethodsTest, AnOwnerWithTheNumberOfThePermanentOneIsNone) {
  Observe(1000, {kPermanent + 0x10});
  fake_.SetOwner(*transient_, 2);  // as a word reads that is no number
  fake_.AddCode(*transient_, 0x100, 0x80, fake_.AddMethod(type_, 1));
  fake_.AddCode(*transient_, 0x200, 0x80, fake_.AddMethod(type_, 1));
  Observe(2000, {kTransient + 0x110});
  Observe(3000, {kTransient + 0x210});
  EXPECT_EQ(NameAt(kTransient + 0x210, 2500), kNoSnapshot);
}

TEST_F(MemoryMethodsTest, AnOwnerThatIsNoObjectOfTheRuntimeIsNone) {
  Observe(1000, {kPermanent + 0x10});
  fake_.SetOwner(*transient_, 7);
  const uint64_t allocator = *fake_.memory.Value<uint64_t>(transient_->list + fake_.layout.code_heap.loader_allocator);
  fake_.memory.Set<uint64_t>(allocator, 0x1234);  // where its class should be
  fake_.AddCode(*transient_, 0x100, 0x80, fake_.AddMethod(type_, 1));
  fake_.AddCode(*transient_, 0x200, 0x80, fake_.AddMethod(type_, 1));
  Observe(2000, {kTransient + 0x110});
  Observe(3000, {kTransient + 0x210});
  EXPECT_EQ(NameAt(kTransient + 0x210, 2500), kNoSnapshot);
}

TEST_F(MemoryMethodsTest, AFreedMethodNamesTheTimesInWhichItWasSeen) {
  Emit(0x100, "Emitted1");
  Observe(2000, {kTransient + 0x110});
  Free(0x100);
  Observe(3000, {kTransient + 0x110});
  EXPECT_THAT(NameAt(kTransient + 0x110, 2000), HasSubstr("Emitted1"));
  EXPECT_EQ(NameAt(kTransient + 0x110, 2500), kNoSnapshot);
  EXPECT_THAT(NameAt(kTransient + 0x310, 3000), HasSubstr("gone")) << "nothing was ever seen there";
}

TEST_F(MemoryMethodsTest, ASnapshotNamesItsMomentAlsoWhenTheMethodIsGone) {
  Emit(0x100, "Emitted1");
  const wire_code_snapshot snapshot = SnapshotOf(0x100, "Emitted1");
  Emit(0x100, "Emitted2");
  Observe(2000, {kTransient + 0x110}, {snapshot});
  // Both were seen at 2000: the one by the sampler, in the sample; the other by a reading behind it.
  clock_.Set({2500});
  Observe(2500, {kTransient + 0x110}, {});
  EXPECT_THAT(NameAt(kTransient + 0x110, 2500), HasSubstr("Emitted2"));
  EXPECT_EQ(NameAt(kTransient + 0x110, 1999), kNoSnapshot);
  EXPECT_EQ(methods_.counters().snapshots, 1u);
  EXPECT_EQ(methods_.counters().snapshots_gone, 0u);
}

TEST_F(MemoryMethodsTest, ASnapshotOfAnEarlierMomentIsNotTheMethodOfALaterOne) {
  Emit(0x100, "Emitted1");
  const wire_code_snapshot snapshot = SnapshotOf(0x100, "Emitted1");
  Emit(0x100, "Emitted2");
  clock_.Set({3000});
  const std::vector<uint64_t> addresses = {kTransient + 0x105};
  const std::vector<wire_code_snapshot> snapshots = {snapshot};
  methods_.Observe(process_, {addresses, snapshots, {2000}});  // it arrived a little later
  EXPECT_THAT(NameAt(kTransient + 0x105, 2000), HasSubstr("Emitted1"));
  EXPECT_EQ(NameAt(kTransient + 0x105, 2001), kNoSnapshot);
  EXPECT_THAT(NameAt(kTransient + 0x105, 3000), HasSubstr("Emitted2"));
}

// Methods of one shape get the same place in turn, and all that their headers point to.
TEST_F(MemoryMethodsTest, AMethodThatComesBackWasNotThereWhenAnotherOneWas) {
  Emit(0x100, "Emitted");
  const wire_code_snapshot odd = SnapshotOf(0x100, "Odd"), even = SnapshotOf(0x100, "Even");
  Free(0x100);
  for (const uint64_t time : {2000, 4000, 6000}) {
    Observe(time, {}, {even});
    Observe(time + 1000, {}, {odd});
  }
  for (const uint64_t time : {2000, 4000, 6000}) {
    EXPECT_THAT(NameAt(kTransient + 0x105, time), HasSubstr("Even"));
    EXPECT_THAT(NameAt(kTransient + 0x105, time + 1000), HasSubstr("Odd"));
    EXPECT_EQ(NameAt(kTransient + 0x105, time + 500), kNoSnapshot);
  }
}

TEST_F(MemoryMethodsTest, AMethodThatComesBackWasNotThereWhenAnotherOneOverlappedIt) {
  Emit(0x100, "Long");
  const wire_code_snapshot around = SnapshotOf(0x100, "Long");
  Emit(0x140, "Short");
  const wire_code_snapshot inner = SnapshotOf(0x140, "Short");
  Free(0x100);
  Observe(2000, {}, {inner});
  Observe(3000, {}, {around});
  Observe(4000, {}, {inner});
  EXPECT_THAT(NameAt(kTransient + 0x145, 2000), HasSubstr("Short"));
  EXPECT_THAT(NameAt(kTransient + 0x145, 3000), HasSubstr("Long"));
  EXPECT_THAT(NameAt(kTransient + 0x145, 4000), HasSubstr("Short"));
}

// An answer holds for the sample alone: another one may have met another method between two looks.
TEST_F(MemoryMethodsTest, AMethodThatWasSeenAtATimeHasThatTime) {
  Emit(0x100, "Even");
  const wire_code_snapshot even = SnapshotOf(0x100, "Even"), odd = SnapshotOf(0x100, "Odd");
  clock_.Set({5000});
  const std::vector<uint64_t> addresses = {kTransient + 0x105};
  methods_.Observe(process_, {addresses, std::span(&even, 1), {2000}});
  methods_.Observe(process_, {addresses, std::span(&odd, 1), {3000}});
  const auto found =
      methods_.Resolve({process_, process_.mappings.Find(addresses[0]), addresses[0] + 1, addresses[0], {2000}});
  ASSERT_TRUE(found.has_value());
  EXPECT_LE(found->until.ns, 3000u);
  EXPECT_THAT(NameAt(addresses[0], 2000), HasSubstr("Even"));
  EXPECT_THAT(NameAt(addresses[0], 3000), HasSubstr("Odd"));
  EXPECT_EQ(NameAt(addresses[0], 2500), kNoSnapshot);
}

TEST_F(MemoryMethodsTest, AMethodThatIsReadAgainWasNotThereWhenAnotherOneOverlappedIt) {
  Emit(0x100, "Long");
  const wire_code_snapshot around = SnapshotOf(0x100, "Long");
  Free(0x100);
  Emit(0x140, "Short");
  Observe(2000, {kTransient + 0x1A0});
  Observe(3000, {}, {around});
  Observe(4000, {kTransient + 0x1A0});
  EXPECT_THAT(NameAt(kTransient + 0x145, 3000), HasSubstr("Long"));
  EXPECT_EQ(NameAt(kTransient + 0x1A0, 2500), kNoSnapshot);
}

// Nobody sampled the one in between, but the runtime told of it.
TEST_F(MemoryMethodsTest, AMethodThatWasCompiledToAPlaceEndsTheOneBefore) {
  Emit(0x100, "Even");
  const wire_code_snapshot even = SnapshotOf(0x100, "Even");
  Observe(2000, {}, {even});
  clock_.Set({3000});
  methods_.NoteCompiled(process_, kTransient + 0x100, 0, {3000});
  Observe(4000, {kTransient + 0x105}, {even});
  EXPECT_THAT(NameAt(kTransient + 0x105, 2000), HasSubstr("Even"));
  EXPECT_THAT(NameAt(kTransient + 0x105, 4000), HasSubstr("Even"));
  EXPECT_EQ(NameAt(kTransient + 0x105, 2500), kNoSnapshot);
  EXPECT_EQ(NameAt(kTransient + 0x105, 3500), kNoSnapshot);
}

// Assemblies of two contexts lie at the same addresses, one after the other.
TEST_F(MemoryMethodsTest, MethodsOfTwoOwnersAreTwo) {
  Observe(1000, {kPermanent + 0x10});
  fake_.SetOwner(*transient_, 7);
  fake_.AddCode(*transient_, 0x100, 0x80, fake_.AddMethod(type_, 1));
  Observe(2000, {kTransient + 0x110});
  fake_.SetOwner(*transient_, 8);
  Observe(3000, {kTransient + 0x110});
  EXPECT_EQ(NameAt(kTransient + 0x110, 2500), kNoSnapshot);
  Observe(4000, {kTransient + 0x110});
  EXPECT_THAT(NameAt(kTransient + 0x110, 3500), HasSubstr("Ns.App::Run"));
}

// A note without a name can't name, and can say that it was another one.
TEST_F(MemoryMethodsTest, ANoteOfAnotherHeaderIsOfAnotherMethod) {
  Observe(1000, {kPermanent + 0x10});
  fake_.SetOwner(*transient_, 7);
  fake_.AddCode(*transient_, 0x100, 0x80, fake_.AddMethod(type_, 1));
  Observe(2000, {kTransient + 0x110});
  wire_code_snapshot other = SnapshotOf(0x100, "");
  other.identity[0] ^= 1;
  Observe(3000, {kTransient + 0x110}, {other});
  Observe(4000, {kTransient + 0x110}, {SnapshotOf(0x100, "")});
  EXPECT_EQ(NameAt(kTransient + 0x110, 3000), kNoSnapshot);
  EXPECT_THAT(NameAt(kTransient + 0x110, 4000), HasSubstr("Ns.App::Run"));
}

TEST_F(MemoryMethodsTest, ANameThatAnotherOneBeginsWithIsAnotherMethod) {
  Emit(0x100, "Emitted");
  const wire_code_snapshot longer = SnapshotOf(0x100, "GetValue"), shorter = SnapshotOf(0x100, "Get");
  Free(0x100);
  Observe(2000, {}, {longer});
  Observe(3000, {}, {shorter});
  EXPECT_THAT(NameAt(kTransient + 0x105, 2000), HasSubstr("GetValue"));
  EXPECT_THAT(NameAt(kTransient + 0x105, 3000), HasSubstr("Get"));
  EXPECT_THAT(NameAt(kTransient + 0x105, 3000), Not(HasSubstr("GetValue")));
}

TEST_F(MemoryMethodsTest, ANameThatTheSamplerCutIsTheMethodThatWasRead) {
  const std::string name(100, 'x');
  Emit(0x100, name);
  Observe(2000, {kTransient + 0x105});
  Observe(3000, {}, {SnapshotOf(0x100, name)});
  Free(0x100);
  EXPECT_THAT(NameAt(kTransient + 0x105, 2500), HasSubstr(name));
}

// Methods of one shape have the same header bytes one after the other: without a name two readings must agree.
TEST_F(MemoryMethodsTest, ASnapshotWithoutANameProvesNothing) {
  const uint64_t method = fake_.AddMethod(type_, 1);
  fake_.AddCode(*transient_, 0x100, 0x80, method);
  clock_.Set({2500});
  const std::vector<uint64_t> addresses = {kTransient + 0x105};
  const std::vector<wire_code_snapshot> snapshots = {SnapshotOf(0x100, "")};
  methods_.Observe(process_, {addresses, snapshots, {2000}});
  EXPECT_THAT(NameAt(kTransient + 0x105, 2000), HasSubstr("not seen in time"));
  EXPECT_THAT(NameAt(kTransient + 0x105, 2500), HasSubstr("Ns.App::Run"));
  EXPECT_EQ(methods_.counters().snapshots_gone, 1u);
}

TEST_F(MemoryMethodsTest, ASnapshotOfAStubIsOne) {
  Emit(0x100, "IL_STUB_PInvoke");
  const wire_code_snapshot snapshot = SnapshotOf(0x100, "IL_STUB_PInvoke");
  Free(0x100);
  Observe(2000, {}, {snapshot});
  EXPECT_THAT(NameAt(kTransient + 0x105, 2000), HasSubstr("IL_STUB_PInvoke"));
}

TEST_F(MemoryMethodsTest, AfterAnAnnouncedExecNothingIsRead) {
  fake_.AddCode(*permanent_, 0x100, 0x80, fake_.AddMethod(type_, 1));
  fake_.AddCode(*permanent_, 0x300, 0x80, fake_.AddMethod(type_, 1));
  Observe(2000, {kPermanent + 0x110});
  process_.exec_announced = {3000};
  const uint64_t reads = fake_.memory.reads;
  Observe(3500, {kPermanent + 0x310});
  EXPECT_THAT(NameAt(kPermanent + 0x110, 2500), HasSubstr("Ns.App::Run"));
  EXPECT_EQ(NameAt(kPermanent + 0x310, 2500), "(nobody's)");
  methods_.Poll(process_, {3600});
  EXPECT_EQ(fake_.memory.reads, reads);
}

// Samples are looked at more often where what they ran may be gone in a moment.
TEST_F(MemoryMethodsTest, TurnsAreShortForYoungProcessesAndAssembliesThatCanBeFreed) {
  process_.compiles_since = {10 * kSecondNs};
  methods_.Poll(process_, {11 * kSecondNs});
  EXPECT_TRUE(methods_.WantsShortIterations({11 * kSecondNs}));
  methods_.Poll(process_, {13 * kSecondNs});
  EXPECT_FALSE(methods_.WantsShortIterations({13 * kSecondNs}));

  // A dynamic method is noted by the sampler.
  Emit(0x100, "Emitted1");
  Observe(14 * kSecondNs, {kTransient + 0x110});
  EXPECT_FALSE(methods_.WantsShortIterations({14 * kSecondNs}));
  fake_.AddCode(*transient_, 0x300, 0x80, fake_.AddMethod(type_, 1));
  Observe(15 * kSecondNs, {kTransient + 0x310});
  EXPECT_TRUE(methods_.WantsShortIterations({15 * kSecondNs}));
  Observe(16 * kSecondNs, {kTransient + 0x310});  // the same one, still there
  EXPECT_FALSE(methods_.WantsShortIterations({16 * kSecondNs}));
}

TEST_F(MemoryMethodsTest, TheSamplerIsToldOfTransientCode) {
  Observe(2000, {});
  methods_.Poll(process_, {2000});
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_EQ(told_[0].code.nibble_version, 1);
  EXPECT_EQ(told_[0].code.begin, kTransient);
  EXPECT_EQ(told_[0].code.end, kTransient + kHeapBytes);
  ASSERT_EQ(told_[0].heaps.size(), 1u);
  EXPECT_EQ(told_[0].heaps[0].begin, kTransient);
  EXPECT_EQ(told_[0].heaps[0].end, kTransient + kHeapBytes);
  EXPECT_EQ(told_[0].heaps[0].nibble_map, transient_->map);
  // Nothing new, nothing said.
  process_.mappings.Insert(Mapping{.start = 0x10000, .end = 0x20000, .kind = MappingKind::kJitMemory});
  methods_.Poll(process_, {5'000'000'000});
  EXPECT_EQ(told_.size(), 1u);
}

TEST_F(MemoryMethodsTest, HeapsAreLookedForLessAndLessOftenUnlessMemoryForCodeBegins) {
  Observe(2000, {});
  uint64_t time_ns = 2000;
  const auto looks = [&] {
    const uint64_t before = fake_.memory.reads;
    methods_.Poll(process_, {time_ns});
    return fake_.memory.reads != before;
  };
  EXPECT_TRUE(looks());
  EXPECT_FALSE(looks());
  int count = 0;
  for (int i = 0; i < 2000; ++i) {  // 20 s in which something is mapped every 10 ms
    time_ns += 10'000'000;
    const uint64_t start = 0x1000'0000 + static_cast<uint64_t>(i) * 0x1000;
    process_.mappings.Insert(Mapping{.start = start, .end = start + 0x1000, .kind = MappingKind::kOther});
    count += looks() ? 1 : 0;
  }
  EXPECT_GE(count, 20 / 4);
  EXPECT_LE(count, 20 / 4 + 8);
  process_.mappings.Insert(Mapping{.start = 0x10000, .end = 0x20000, .kind = MappingKind::kJitMemory});
  EXPECT_TRUE(looks()) << "methods of a new heap may run at once";
  EXPECT_FALSE(looks());
}

TEST_F(MemoryMethodsTest, TheHeapOfAMethodThatWasJustCompiledIsToldAtOnce) {
  Observe(2000, {});
  methods_.Poll(process_, {2000});
  ASSERT_EQ(told_.size(), 1u);
  methods_.NoteCompiled(process_, kTransient + 0x100, 0, clock_.Now());  // known
  EXPECT_EQ(told_.size(), 1u);
  constexpr uint64_t kNew = kTransient + 16 * kHeapBytes;
  methods_.NoteCompiled(process_, kNew + 0x100, 0, clock_.Now());  // not there
  EXPECT_EQ(told_.size(), 1u);
  const FakeRuntime::Heap& fresh = fake_.AddHeap(kNew, kHeapBytes, /*collectible=*/true);
  methods_.NoteCompiled(process_, kNew + 0x100, 0, clock_.Now());
  ASSERT_EQ(told_.size(), 2u);
  ASSERT_EQ(told_[1].heaps.size(), 2u);
  EXPECT_EQ(told_[1].heaps[0].begin, kTransient);
  EXPECT_EQ(told_[1].heaps[1].begin, kNew);
  EXPECT_EQ(told_[1].heaps[1].nibble_map, fresh.map);
  EXPECT_EQ(told_[1].code.end, kNew + kHeapBytes);
}

// A method of 0x80 bytes and a funclet of 0x10, in a permanent heap.
class MemoryMethodsCodeTest : public MemoryMethodsTest {
 protected:
  static constexpr uint64_t kMethod = 0x100;
  static constexpr uint32_t kBytes = 0x80, kFuncletBytes = 0x10, kUnwind = 0x1000, kFuncletUnwind = 0x2000;

  void SetUp() override {
    MemoryMethodsTest::SetUp();
    const uint64_t header = fake_.AddCode(*permanent_, kMethod, kBytes, fake_.AddMethod(type_, 1), kFuncletBytes);
    table_ = header + fake_.layout.code_header.unwinds;
    fake_.memory.Set<uint32_t>(table_ + 8, kUnwind);
    fake_.memory.Set<uint32_t>(table_ + 12 + 8, kFuncletUnwind);
    fake_.memory.SetBytes(kPermanent + kUnwind, Hex(kFramed.unwind));
    fake_.memory.SetBytes(kPermanent + kFuncletUnwind, Hex(kFunclet8.unwind));
  }
  std::optional<CodeBody> Body(bool keep_code = true) {
    MemoryMethodsOptions options = Options();
    options.keep_code = keep_code;
    MemoryMethods methods(options, discovery_, images_, frames_, notices_, clock_);
    const uint64_t address = kPermanent + kMethod + 0x10;
    methods.Observe(process_, {std::span(&address, 1), {}, {2000}});
    return methods.BodyOf({process_, process_.mappings.Find(address), address, address, {2000}});
  }
  // Codes are in pairs.
  static std::string Text(const CodeBytes& function) {
    std::string bytes = absl::HexStringToBytes(function.unwind);
    return bytes + std::string(bytes.size() % 4, '\0');
  }

  uint64_t table_ = 0;  // of RUNTIME_FUNCTIONs
};

TEST_F(MemoryMethodsCodeTest, CodeIsKeptWithTheUnwindDataOfItsParts) {
  const std::optional<CodeBody> body = Body();
  ASSERT_TRUE(body.has_value());
  EXPECT_EQ(body->start, kPermanent + kMethod);
  EXPECT_EQ(body->bytes->size(), kBytes + kFuncletBytes);
  EXPECT_THAT(body->unwind, ElementsAre(CodeUnwind{0, kBytes, Text(kFramed)},
                                        CodeUnwind{kBytes, kBytes + kFuncletBytes, Text(kFunclet8)}));
  EXPECT_FALSE(Body(/*keep_code=*/false).has_value());
}

TEST_F(MemoryMethodsCodeTest, CodeIsKeptWithoutUnwindDataThatCannotBeHad) {
  const auto lost = [&](uint64_t address, uint32_t value) {
    const uint32_t before = *fake_.memory.Value<uint32_t>(address);
    fake_.memory.Set<uint32_t>(address, value);
    const std::optional<CodeBody> body = Body();
    fake_.memory.Set<uint32_t>(address, before);
    return body.has_value() && body->bytes->size() == kBytes + kFuncletBytes && body->unwind.empty();
  };
  EXPECT_FALSE(lost(table_ + 8, kUnwind));
  EXPECT_TRUE(lost(table_ + 8, 0x70000000)) << "no memory is there";
  EXPECT_TRUE(lost(table_ + 8, kUnwind + 1)) << "of another version";
  EXPECT_TRUE(lost(table_ + 4, kMethod)) << "a part ends where it begins";
  EXPECT_TRUE(lost(table_ + 12, kMethod + kBytes - 1)) << "parts overlap";
  EXPECT_TRUE(lost(table_ + 12, kMethod - 1)) << "a funclet lies before its method";
}

TEST_F(MemoryMethodsCodeTest, OfManyPartsTheFirstAreRead) {
  const uint64_t header = fake_.AddCode(*permanent_, 0x800, 2 * kMaxUnwindParts, fake_.AddMethod(type_, 1));
  constexpr uint32_t kCount = 2 * kMaxUnwindParts;
  fake_.memory.Set<uint32_t>(header + fake_.layout.code_header.unwind_count, kCount);
  std::vector<std::array<uint32_t, 3>> table;
  for (uint32_t i = 0; i < kCount; ++i) table.push_back({0x800 + i, 0x801 + i, kUnwind});
  const uint64_t moved = fake_.memory.Allocate(fake_.layout.code_header.unwinds + 12 * kCount);
  std::vector<std::byte> fields(fake_.layout.code_header.unwinds);
  ASSERT_TRUE(fake_.memory.Read(header, fields));
  fake_.memory.SetBytes(moved, fields);
  fake_.memory.SetBytes(moved + fields.size(), std::as_bytes(std::span(table)));
  fake_.SetHeader(*permanent_, 0x800, moved);
  MemoryMethodsOptions options = Options();
  options.keep_code = true;
  MemoryMethods methods(options, discovery_, images_, frames_, notices_, clock_);
  const uint64_t address = kPermanent + 0x800;
  methods.Observe(process_, {std::span(&address, 1), {}, {2000}});
  const auto body = methods.BodyOf({process_, process_.mappings.Find(address), address, address, {2000}});
  ASSERT_TRUE(body.has_value());
  ASSERT_EQ(body->unwind.size(), kMaxUnwindParts);
  EXPECT_EQ(body->unwind.back(), (CodeUnwind{kMaxUnwindParts - 1, kMaxUnwindParts, Text(kFramed)}));
}

TEST_F(MemoryMethodsTest, MemoryThatMayNotBeReadIsARefusalWithItsReason) {
  open_ = absl::PermissionDeniedError("not yours");
  Observe(2000, {kPermanent + 0x110});
  EXPECT_THAT(NameAt(kPermanent + 0x110, 2000), HasSubstr("not yours"));
  Observe(3000, {kPermanent + 0x110});
  EXPECT_EQ(opened_, 1);
  EXPECT_EQ(methods_.counters().refused, 1u);
  ASSERT_EQ(notices_.kept().size(), 1u);
  EXPECT_EQ(methods_.RefusalOf(process_.key), "not yours");
}

// As a private build may be.
class WithoutVersionTest : public MemoryMethodsTest {
 protected:
  std::string Image() override {
    std::string image = ReadWholeFile(RuntimeFixture("libfake_coreclr.so"), 1 << 20).value_or("");
    image = absl::StrReplaceAll(image, {{"@(#)Version 8", "@(#)Version x"}});
    std::string path = absl::StrCat(testing::TempDir(), "/without_version_", getpid(), ".so");
    std::ofstream(path, std::ios::binary) << image;
    return path;
  }
  uint16_t Major() const override { return 0; }
};

TEST_F(WithoutVersionTest, ItIsNotRead) {
  Observe(2000, {kPermanent + 0x110});
  EXPECT_EQ(methods_.RefusalOf(process_.key), "its image does not say its version");
  ASSERT_EQ(notices_.kept().size(), 1u);
  EXPECT_THAT(notices_.kept()[0].hint, HasSubstr("--try-unknown-runtime"));
}

TEST_F(WithoutVersionTest, WhereThatIsAskedForItIsTriedAsTheNewest) {
  MemoryMethodsOptions options = Options();
  options.try_unknown_runtime = true;
  MemoryMethods methods(options, discovery_, images_, frames_, notices_, clock_);
  const uint64_t address = kPermanent + 0x110;
  methods.Observe(process_, {std::span(&address, 1), {}, {2000}});
  EXPECT_EQ(methods.RefusalOf(process_.key), "it exports no contract descriptor") << "which those of .NET 11 do";
}

// The bound is on what is known, and not on what was ever known.
TEST_F(MemoryMethodsTest, WhatWasDroppedDoesNotCount) {
  constexpr size_t kTimes = 1 << 18, kAtOnce = 1 << 12;
  fake_.AddCode(*permanent_, 0x100, 0x80, fake_.AddMethod(type_, 1));
  Observe(2000, {kPermanent + 0x110});
  Emit(0x100, "Emitted1");
  const wire_code_snapshot one = SnapshotOf(0x100, "Emitted1"), other = SnapshotOf(0x100, "Emitted2");
  std::vector<wire_code_snapshot> snapshots;
  for (size_t i = 0; i < kAtOnce; i += 2) snapshots.insert(snapshots.end(), {one, other});
  // All are of one moment, so that each one ends the one before.
  for (size_t i = 0; i <= kTimes; i += kAtOnce) Observe(3000 + i, {}, snapshots);
  EXPECT_GT(methods_.counters().transient, kTimes);
  Observe(9'000'000, {kTransient + 0x110});  // which looks whether there are too many
  const uint64_t reads = fake_.memory.reads;
  Observe(9'000'001, {kPermanent + 0x110});
  EXPECT_THAT(NameAt(kPermanent + 0x110, 9'000'001), HasSubstr("Ns.App::Run"));
  EXPECT_EQ(fake_.memory.reads, reads) << "it is still known";
}

// Addresses that need no second look are those of methods that are known.
TEST_F(MemoryMethodsTest, WhatIsForgottenForItsNumberIsReadAgain) {
  constexpr size_t kAtOnce = 1 << 12;
  fake_.AddCode(*permanent_, 0x100, 0x80, fake_.AddMethod(type_, 1));
  Observe(2000, {kPermanent + 0x110});
  Emit(0x100, "Emitted1");
  wire_code_snapshot snapshot = SnapshotOf(0x100, "Emitted1");
  for (size_t done = 0; done <= 1 << 18;) {
    std::vector<wire_code_snapshot> snapshots;
    for (; snapshots.size() < kAtOnce; ++done) {
      snapshot.start += 0x100;
      snapshot.address = snapshot.start + 5;
      snapshots.push_back(snapshot);
    }
    Observe(3000 + done, {}, snapshots);
  }
  Observe(9'000'000, {kTransient + 0x110});
  Observe(9'000'001, {kPermanent + 0x110});
  EXPECT_THAT(NameAt(kPermanent + 0x110, 9'000'001), HasSubstr("Ns.App::Run"));
}

TEST_F(MemoryMethodsTest, WhatIsForgottenIsReadAnew) {
  Emit(0x100, "Emitted1");
  Observe(2000, {kTransient + 0x110});
  process_.ends->Announce(process_.key);
  clock_.Set({3000});
  EXPECT_EQ(NameAt(kTransient + 0x110, 2000), kNoSnapshot);
  EXPECT_EQ(opened_, 2);
}

}  // namespace
}  // namespace clrsampler
