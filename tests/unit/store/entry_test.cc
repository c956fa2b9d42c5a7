// Blobs: what is encoded comes back, and what is not ours is refused whatever it says.
#include "store/entry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "formats/byte_reader.h"
#include "store/blob.h"
#include "store/profile_collector.h"
#include "store/segment_builder.h"

namespace clrsampler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr DictionarySizes kSizes = {.strings = 50, .frames = 100, .nodes = 1000, .processes = 10, .threads = 30};

std::vector<StackRow> SomeRows(size_t count, uint64_t unit) {
  std::mt19937 random(7);
  std::vector<StackRow> rows;
  for (size_t i = 0; i < count; ++i) {
    rows.push_back({.thread = static_cast<uint32_t>(random() % kSizes.threads),
                    .node = static_cast<NodeIndex>(random() % kSizes.nodes),
                    .state = static_cast<SampleState>(random() % kSampleStateCount),
                    .weight = unit * (1 + random() % 3)});
  }
  return rows;
}

TEST(RowsTest, MergingAddsUpEqualOnes) {
  std::vector<StackRow> rows = {{2, 5, SampleState::kNone, 7},
                                {1, 5, SampleState::kPaused, 1},
                                {2, 5, SampleState::kNone, 3},
                                {1, 5, SampleState::kNone, 2}};
  MergeRows(rows);
  EXPECT_THAT(rows, ElementsAre(StackRow{1, 5, SampleState::kNone, 2}, StackRow{1, 5, SampleState::kPaused, 1},
                                StackRow{2, 5, SampleState::kNone, 10}));
}

TEST(RowsTest, ComeBack) {
  for (const uint64_t unit : {1ull, 52'631'578ull, 1ull << 50}) {
    std::vector<StackRow> rows = SomeRows(2000, unit);
    MergeRows(rows);
    std::vector<StackRow> decoded;
    ASSERT_TRUE(DecodeRows(AsBytes(EncodeRows(rows)), kSizes, decoded).ok());
    EXPECT_EQ(decoded, rows);
  }
  std::vector<StackRow> none;
  EXPECT_TRUE(DecodeRows(AsBytes(EncodeRows({})), kSizes, none).ok());
  EXPECT_TRUE(none.empty());
}

TEST(RowsTest, ASampleTakesThreeBytesOrFewer) {
  std::vector<StackRow> rows = SomeRows(2000, 52'631'578);
  MergeRows(rows);
  EXPECT_LT(EncodeRows(rows).size(), rows.size() * 3);
}

TEST(RowsTest, AreInTheBoundsOfTheDictionary) {
  std::vector<StackRow> rows;
  for (const StackRow& row : {StackRow{30, 1, SampleState::kNone, 1}, StackRow{1, 1000, SampleState::kNone, 1}}) {
    EXPECT_TRUE(absl::IsDataLoss(DecodeRows(AsBytes(EncodeRows({&row, 1})), kSizes, rows)));
    EXPECT_TRUE(rows.empty());
  }
  const StackRow whole = {29, 999, SampleState::kPaused, uint64_t{1} << 62};
  EXPECT_TRUE(DecodeRows(AsBytes(EncodeRows({&whole, 1})), kSizes, rows).ok());
  EXPECT_THAT(rows, ElementsAre(whole));
}

TEST(RowsTest, CutAnywhereTheyAreWholeGroupsOrRefused) {
  std::vector<StackRow> rows = SomeRows(100, 1);
  MergeRows(rows);
  const std::string bytes = EncodeRows(rows);
  for (size_t size = 0; size < bytes.size(); ++size) {
    std::vector<StackRow> decoded;
    const absl::Status status = DecodeRows(AsBytes(bytes).first(size), kSizes, decoded);
    EXPECT_LT(decoded.size(), rows.size());
    if (!status.ok()) {
      EXPECT_TRUE(decoded.empty());
    }
  }
}

TEST(TalliesTest, ComeBackAndAddUp) {
  ProcessTally tally = {{.samples = 5, .cpu_ns = {1, 0, 3, 0, 5}, .hooked = true, .compile_ns = 9}, 3, {}};
  tally.managed = {.named = 7, .unnamed = 0};
  tally.collections = {0, 0, 2};
  tally.allocated_bytes = 1'000'000'000;
  tally.waits.running_ns = 11;
  tally.waits.by_kind.back() = 13;  // the last one of a part has a bit of its own, too
  tally.pauses_by_kind = {{4, 2}};
  ProcessTally other = tally;
  other.process = 1;
  other.exited = true;
  std::vector<ProcessTally> decoded;
  ASSERT_TRUE(DecodeTallies(AsBytes(EncodeTallies(std::vector{tally, other, tally})), kSizes, decoded).ok());
  ASSERT_EQ(decoded.size(), 3u);
  MergeTallies(decoded);
  ASSERT_EQ(decoded.size(), 2u);
  EXPECT_EQ(decoded[0].process, 1u);
  EXPECT_TRUE(decoded[0].exited);
  EXPECT_EQ(decoded[0].cpu_ns, tally.cpu_ns);
  EXPECT_EQ(decoded[1].total_cpu_ns(), 18u);
  EXPECT_EQ(decoded[1].managed.named, 14u);
  EXPECT_EQ(decoded[1].collections[2], 4u);
  EXPECT_EQ(decoded[1].compile_ns, 18u);
  EXPECT_EQ(decoded[1].allocated_bytes, 2'000'000'000u);
  EXPECT_EQ(decoded[1].waits.running_ns, 22u);
  EXPECT_EQ(decoded[1].waits.by_kind.back(), 26u);
  EXPECT_EQ(decoded[1].waits.waited_ns(), 26u);
  EXPECT_TRUE(decoded[1].hooked);
  EXPECT_FALSE(decoded[1].exited);
  EXPECT_EQ(decoded[1].pauses_by_kind.at(4), 4u);
  std::vector<ProcessTally> refused;
  EXPECT_FALSE(DecodeTallies(AsBytes(EncodeTallies({&tally, 1})), {.processes = 3}, refused).ok());
}

TEST(PausesTest, ComeBackInTheOrderOfTheirRequestsTheLongestOfThem) {
  std::vector<EntryPause> pauses;
  for (uint32_t i = 0; i < 10; ++i) {
    pauses.push_back({.process = i, .requested_unix_ns = 100 - i, .suspend_ns = 1, .pause_ns = i * i, .kind = i});
  }
  pauses[9].generation = 2;
  pauses[9].gc_index = 77;
  pauses[9].induced = true;
  pauses[9].culprits = {{.method = 8, .tid = 5, .delay_ns = 6, .samples = 7}};
  EXPECT_EQ(MergePauses(pauses, 3), 7u);
  std::vector<EntryPause> decoded;
  ASSERT_TRUE(DecodePauses(AsBytes(EncodePauses(pauses)), kSizes, decoded).ok());
  ASSERT_EQ(decoded.size(), 3u);
  EXPECT_EQ(decoded[0].pause_ns, 81u);
  EXPECT_EQ(decoded[0].generation, 2u);
  EXPECT_EQ(decoded[0].gc_index, 77u);
  EXPECT_TRUE(decoded[0].induced);
  ASSERT_EQ(decoded[0].culprits.size(), 1u);
  EXPECT_EQ(decoded[0].culprits[0].delay_ns, 6u);
  EXPECT_EQ(decoded[1].pause_ns, 64u);
  EXPECT_FALSE(decoded[1].generation.has_value());
}

TEST(MethodsTest, AddUpByProcessMethodAndTier) {
  std::vector<EntryMethod> methods = {{1, 2, 3, 1, 10, 10, 100}, {1, 2, 4, 1, 50, 50, 100}, {1, 2, 3, 2, 30, 25, 10}};
  EXPECT_EQ(MergeMethods(methods, 1), 1u);
  methods = {{1, 2, 3, 1, 10, 10, 100}, {1, 2, 4, 1, 35, 35, 100}, {1, 2, 3, 2, 30, 25, 10}};
  EXPECT_EQ(MergeMethods(methods), 0u);
  std::vector<EntryMethod> decoded;
  ASSERT_TRUE(DecodeMethods(AsBytes(EncodeMethods(methods)), kSizes, decoded).ok());
  ASSERT_EQ(decoded.size(), 2u);
  EXPECT_EQ(decoded[0].total_ns, 40u);
  EXPECT_EQ(decoded[0].count, 3u);
  EXPECT_EQ(decoded[0].longest_ns, 25u);
  EXPECT_EQ(decoded[0].bytes, 110u);
}

TEST(AccountTest, ComesBackAndAddsUp) {
  EntryAccount account = {.covered_ns = 10, .samples_taken = 4, .peak_rss_bytes = 9, .bpf_map_bytes = 3};
  account.lost = {{1, 5}};
  account.notices = {2};
  account.rates = {{100, 19}};
  EntryAccount later = account;
  later.bpf_map_bytes = 2;
  later.lost = {{1, 1}, {2, 1}};
  later.rates = {{110, 19}, {115, 9}};
  MergeAccount(account, later);
  const absl::StatusOr<EntryAccount> decoded = DecodeAccount(AsBytes(EncodeAccount(account)), kSizes);
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->covered_ns, 20u);
  EXPECT_EQ(decoded->samples_taken, 8u);
  EXPECT_EQ(decoded->peak_rss_bytes, 9u);
  EXPECT_EQ(decoded->bpf_map_bytes, 2u) << "the newest";
  EXPECT_EQ(decoded->lost, (std::map<StringIndex, uint64_t>{{1, 6}, {2, 1}}));
  EXPECT_THAT(decoded->notices, ElementsAre(2, 2));
  ASSERT_EQ(decoded->rates.size(), 2u) << "where it changed";
  EXPECT_EQ(decoded->rates[1].time_unix_ns, 115u);
}

TEST(BlobTest, ComesBackPlainOrCompressed) {
  BlobPacker packer;
  for (const std::string& bytes : {std::string(), std::string("short"), std::string(100'000, 'x')}) {
    const absl::StatusOr<std::string> blob = packer.Pack(AsBytes(bytes));
    ASSERT_TRUE(blob.ok());
    EXPECT_EQ(*UnpackBlob(AsBytes(*blob)), bytes);
  }
  EXPECT_LT(packer.Pack(AsBytes(std::string(100'000, 'x')))->size(), 100u);
}

TEST(BlobTest, AnyOtherBitIsNoticed) {
  BlobPacker packer;
  for (const std::string& bytes : {std::string("a short text"), std::string(1000, 'x')}) {
    const std::string blob = *packer.Pack(AsBytes(bytes));
    for (size_t bit = 0; bit < blob.size() * 8; ++bit) {
      std::string other = blob;
      other[bit / 8] = static_cast<char>(other[bit / 8] ^ 1 << bit % 8);
      const absl::StatusOr<std::string> unpacked = UnpackBlob(AsBytes(other));
      EXPECT_FALSE(unpacked.ok() && *unpacked != bytes);
    }
    EXPECT_FALSE(UnpackBlob(AsBytes(blob).first(4)).ok());
    EXPECT_FALSE(UnpackBlob(AsBytes(blob).first(blob.size() - 1)).ok());
  }
}

ProfileModel ModelOf(const std::vector<std::vector<std::string>>& stacks) {
  ProfileModelBuilder builder;
  for (const auto& stack : stacks) {
    std::vector<FrameIndex> frames;
    for (const std::string& name : stack) {
      frames.push_back(builder.Frame({.kind = ModelFrameKind::kJit, .name = builder.String(name)}));
    }
    builder.Add({.thread = builder.Thread({.pid = 1}), .stack = builder.Stack(frames)});
  }
  return *std::move(builder).Build();
}

TEST(DictionaryTest, LinesComeBackAndTakeRoomOnlyWhereTheyAre) {
  const auto recorded = [](uint32_t line) {
    ProfileModelBuilder builder;
    const FrameIndex total = builder.Frame({.kind = ModelFrameKind::kJit,
                                            .line_kind = LineKind::kOptimised,
                                            .name = builder.String("Total"),
                                            .source_file = builder.String("/src/Cart.cs"),
                                            .line = line,
                                            .column = 9});
    builder.Add({.thread = builder.Thread({.pid = 1}), .stack = builder.Node(kRootNode, total)});
    return *std::move(builder).Build();
  };
  std::vector<size_t> bytes;
  for (const uint32_t line : {0u, 57u}) {
    SegmentBuilder builder;
    builder.Nodes(recorded(line));
    const std::string addition = builder.AdditionSince({});
    bytes.push_back(addition.size());
    SegmentDictionary dictionary;
    ASSERT_TRUE(dictionary.Extend(AsBytes(addition)).ok());
    const ModelFrame& frame = dictionary.frame(0);
    EXPECT_EQ(frame.kind, ModelFrameKind::kJit);
    EXPECT_EQ(dictionary.text(frame.source_file), "/src/Cart.cs");
    EXPECT_EQ(frame.line, line);
    EXPECT_EQ(frame.column, line == 0 ? 0 : 9);
    EXPECT_EQ(frame.line_kind, line == 0 ? LineKind::kNone : LineKind::kOptimised);
    for (size_t cut = 0; cut < addition.size(); ++cut) {
      EXPECT_FALSE(SegmentDictionary().Extend(AsBytes(addition).first(cut)).ok());
    }

    builder.Process({.pid = 1});
    builder.Thread({});
    ASSERT_TRUE(dictionary.Extend(AsBytes(builder.AdditionSince(dictionary.sizes()))).ok());
    ProfileCollector collector({.rows = 9, .nodes = 9});
    collector.BeginSegment(dictionary);
    ASSERT_TRUE(collector.Add(dictionary, {.node = 1, .weight = 3}).ok());
    const ProfileModel model = *std::move(collector).Build();
    EXPECT_EQ(model.frames[0].line, line);
    EXPECT_EQ(model.frames[0].line_kind, line == 0 ? LineKind::kNone : LineKind::kOptimised);
  }
  EXPECT_EQ(bytes[1], bytes[0] + 3);
}

TEST(DictionaryTest, TheHashOfAFileTakesRoomOnlyWhereItIs) {
  std::vector<size_t> bytes;
  for (const uint32_t line : {0u, 57u}) {
    for (const absl::string_view hash : {"", "f00d"}) {
      ProfileModelBuilder recorded;
      const FrameIndex total = recorded.Frame({.kind = ModelFrameKind::kType,
                                               .name = recorded.String("Total"),
                                               .build_id = recorded.String("c0ffee"),
                                               .file_hash = recorded.String(hash),
                                               .line = line});
      recorded.Add({.thread = recorded.Thread({.pid = 1}), .stack = recorded.Node(kRootNode, total)});
      SegmentBuilder builder;
      builder.Nodes(*std::move(recorded).Build());
      const std::string addition = builder.AdditionSince({});
      bytes.push_back(addition.size());
      SegmentDictionary dictionary;
      ASSERT_TRUE(dictionary.Extend(AsBytes(addition)).ok());
      const ModelFrame& frame = dictionary.frame(0);
      EXPECT_EQ(frame.kind, ModelFrameKind::kType);
      EXPECT_EQ(dictionary.text(frame.build_id), "c0ffee");
      EXPECT_EQ(dictionary.text(frame.file_hash), hash);
      EXPECT_EQ(frame.line, line);
      for (size_t cut = 0; cut < addition.size(); ++cut) {
        EXPECT_FALSE(SegmentDictionary().Extend(AsBytes(addition).first(cut)).ok());
      }
    }
  }
  constexpr size_t kTextBytes = 5;  // only texts that frames have are written
  EXPECT_EQ(bytes[1], bytes[0] + 1 + kTextBytes);
  EXPECT_EQ(bytes[3], bytes[2] + 1 + kTextBytes);
}

TEST(DictionaryTest, FilesKeepTheirPlaceOnTheWebAndAProfileHasThoseOfItsFrames) {
  ProfileModelBuilder model;
  const auto frame_in = [&](const char* file) {
    return model.Node(kRootNode,
                      model.Frame({.name = model.String("Pay"), .source_file = model.String(file), .line = 1}));
  };
  const NodeIndex cart = frame_in("/_/Cart.cs");
  frame_in("/_/Secret.cs");
  model.Source(model.String("/_/Cart.cs"), model.String("https://host.example/Cart.cs"), "text");
  model.Source(model.String("/_/Secret.cs"), model.String("https://host.example/Secret.cs"), "");
  model.Source(model.String("/_/Nowhere.cs"), 0, "text");
  SegmentBuilder builder;
  const std::vector<NodeIndex> nodes = builder.Nodes(*std::move(model).Build());
  builder.Process({.pid = 1});
  builder.Thread({});
  const std::string addition = builder.AdditionSince({});
  EXPECT_EQ(addition.find("text"), std::string::npos) << "the history has no source text";
  EXPECT_EQ(builder.sizes().sources, 2u);

  for (size_t cut = 1; cut <= 4; ++cut) {
    SegmentDictionary damaged;
    EXPECT_EQ(damaged.Extend(AsBytes(addition).first(addition.size() - cut)).ok(), cut % 2 == 0) << cut;
  }
  SegmentDictionary dictionary;
  ASSERT_TRUE(dictionary.Extend(AsBytes(addition)).ok());
  EXPECT_EQ(dictionary.sizes(), builder.sizes());
  ProfileCollector collector;
  collector.BeginSegment(dictionary);
  ASSERT_TRUE(collector.Add(dictionary, {.node = nodes[cart], .weight = 3}).ok());
  const ProfileModel profile = *std::move(collector).Build();
  ASSERT_EQ(profile.sources.size(), 1u);
  EXPECT_EQ(profile.text(profile.sources[0].file), "/_/Cart.cs");
  EXPECT_EQ(profile.text(profile.sources[0].url), "https://host.example/Cart.cs");
}

TEST(DictionaryTest, AdditionsComeBackInTheirOrderOnly) {
  SegmentBuilder builder;
  builder.Nodes(ModelOf({{"main", "a"}, {"main", "b"}}));
  const DictionarySizes first = builder.sizes();
  const std::string addition = builder.AdditionSince({});
  EXPECT_EQ(builder.Nodes(ModelOf({{"main", "b"}, {"main", "a"}})).size(), 4u);
  EXPECT_EQ(builder.sizes(), first) << "nothing new";
  const uint32_t process = builder.Process({.pid = 7, .comm = builder.String("comm"), .uid = 0});
  builder.Thread({.process = process, .tid = 8, .name = builder.String("main")});
  const std::string second = builder.AdditionSince(first);

  SegmentDictionary dictionary;
  EXPECT_TRUE(absl::IsDataLoss(dictionary.Extend(AsBytes(second)))) << "the first is missing";
  ASSERT_TRUE(dictionary.Extend(AsBytes(addition)).ok());
  EXPECT_FALSE(dictionary.Extend(AsBytes(addition)).ok()) << "twice";
  EXPECT_EQ(dictionary.sizes(), first);
  ASSERT_TRUE(dictionary.Extend(AsBytes(second)).ok());
  EXPECT_EQ(dictionary.sizes(), builder.sizes());
  EXPECT_EQ(dictionary.text(dictionary.frame(dictionary.node(3).frame).name), "b");
  EXPECT_EQ(dictionary.node(3).parent, 1u);
  EXPECT_EQ(dictionary.text(dictionary.process(0).comm), "comm");
  EXPECT_EQ(dictionary.process(0).uid, 0u);
  EXPECT_EQ(dictionary.thread(0).tid, 8u);

  SegmentDictionary sealed;  // as the end of a segment writes it
  ASSERT_TRUE(sealed.Extend(AsBytes(builder.AdditionSince({}))).ok());
  EXPECT_EQ(sealed.sizes(), builder.sizes());
}

TEST(DictionaryTest, StaysAsItWasWhenAnAdditionIsDamaged) {
  SegmentBuilder builder;
  builder.Nodes(ModelOf({{"main", "a", "b"}}));
  const std::string bytes = builder.AdditionSince({});
  for (size_t size = 0; size < bytes.size(); ++size) {
    SegmentDictionary dictionary;
    EXPECT_FALSE(dictionary.Extend(AsBytes(bytes).first(size)).ok());
    EXPECT_EQ(dictionary.sizes(), DictionarySizes());
    ASSERT_TRUE(dictionary.Extend(AsBytes(bytes)).ok());
  }
}

TEST(ProfileCollectorTest, PutsThreadsTogetherBeforeItGivesUp) {
  SegmentBuilder builder;
  const std::vector<NodeIndex> nodes = builder.Nodes(ModelOf({{"a"}, {"b"}, {"c"}, {"d"}, {"e"}}));
  const uint32_t process = builder.Process({.pid = 7, .comm = builder.String("comm")});
  for (uint32_t tid = 1; tid <= 4; ++tid) builder.Thread({process, tid, 0});
  SegmentDictionary dictionary;
  ASSERT_TRUE(dictionary.Extend(AsBytes(builder.AdditionSince({}))).ok());

  ProfileCollector collector({.rows = 4});
  collector.BeginSegment(dictionary);
  for (uint32_t thread = 0; thread < 4; ++thread) {
    for (uint32_t i = 1; i <= 3; ++i) {
      ASSERT_TRUE(collector.Add(dictionary, {thread, nodes[i], SampleState::kNone, 10 + i}).ok());
    }
  }
  absl::Status status;
  for (uint32_t i = 4; i <= 5; ++i) status.Update(collector.Add(dictionary, {0, nodes[i], SampleState::kNone, 1}));
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  const absl::StatusOr<ProfileModel> model = std::move(collector).Build();
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->samples.size(), 4u);
  EXPECT_EQ(model->total_weight, 4 * (11 + 12 + 13) + 1u);
  for (const ThreadIndex thread : model->samples.thread) EXPECT_EQ(model->threads[thread].tid, 0u);
}

}  // namespace
}  // namespace clrsampler
