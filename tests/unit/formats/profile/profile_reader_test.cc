// Profiles that other programs write, and profiles that nobody should: each is a model or a clear error, in little
// memory.
#include "formats/profile/profile_reader.h"

#include <gmock/gmock.h>
#include <zlib.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/profile/gzip.h"
#include "formats/profile/pprof_fields.h"
#include "protozero/pbf_builder.hpp"
#include "status/status.h"

namespace clrsampler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Weights = std::map<std::string, uint64_t>;

// "comm main;jit:Work" -> weight; kinds only where they are known.
Weights WeightsOf(const ProfileModel& model) {
  Weights weights;
  for (size_t row = 0; row < model.samples.size(); ++row) {
    std::string path;
    for (NodeIndex node = model.samples.stack[row]; node != kRootNode; node = model.nodes[node].parent) {
      const ModelFrame& frame = model.frame_of(node);
      path =
          absl::StrCat(frame.kind == ModelFrameKind::kUnknown ? "" : absl::StrCat(ModelFrameKindText(frame.kind), ":"),
                       model.text(frame.name), path.empty() ? "" : ";", path);
    }
    weights[absl::StrCat(model.text(model.threads[model.samples.thread[row]].comm), " ", path)] +=
        model.samples.weight_of(row);
  }
  return weights;
}

ProfileModel Read(absl::string_view bytes) {
  absl::StatusOr<ProfileModel> model = ReadProfile(bytes);
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *std::move(model) : ProfileModel();
}

std::string ErrorOf(absl::string_view bytes) {
  const absl::StatusOr<ProfileModel> model = ReadProfile(bytes);
  EXPECT_FALSE(model.ok());
  EXPECT_FALSE(model.ok() || HintOf(model.status()).empty()) << model.status();
  return std::string(model.status().message());
}

TEST(ReadFoldedTest, KindsAreToldByTheirMarks) {
  EXPECT_EQ(WeightsOf(Read("web;main;Work_[j];read_[k] 3\nweb;main;Small_[i] 2\r\nls 1")),
            (Weights{{"web main;jit:Work;kernel:read", 3}, {"web main;inlined:Small", 2}, {"ls ", 1}}));
}

// "Total:57:9 exact" of each frame, in their order.
std::vector<std::string> PlacesOf(const ProfileModel& model) {
  std::vector<std::string> places;
  for (const ModelFrame& frame : model.frames) {
    places.push_back(
        absl::StrCat(model.text(frame.name), ":", frame.line, ":", frame.column, " ", LineKindText(frame.line_kind)));
  }
  return places;
}

TEST(ReadFoldedTest, OnlyManagedFramesHaveLines) {
  EXPECT_THAT(PlacesOf(Read("web;Total:57_[j];a.cc:57;b:57_[k];c:57_[i];:57_[j];Total:057_[j] 1\n")),
              ElementsAre("Total:57:0 none", "a.cc:57:0:0 none", "b:57:0:0 none", "c:57:0:0 none", ":57:0:0 none",
                          "Total:057:0:0 none"));
}

TEST(ReadFoldedTest, FractionsAreRoundedAndSpacesStay) {
  EXPECT_EQ(WeightsOf(Read("a b;List<int> Add(int, string)   2.6\n")),
            (Weights{{"a b List<int> Add(int, string)", 3}}));
}

TEST(ReadFoldedTest, WhatIsNoFoldedTextSaysTheLine) {
  EXPECT_THAT(ErrorOf("web;main 1\nno count here\n"), HasSubstr("line 2"));
  EXPECT_THAT(ErrorOf("web;main 1 2\n"), HasSubstr("two counts"));
  EXPECT_THAT(ErrorOf("web;main -1\n"), HasSubstr("line 1"));
  EXPECT_THAT(ErrorOf("web;main 99999999999999999999999\n"), HasSubstr("2^63"));
  EXPECT_THAT(ErrorOf(" 7\n"), HasSubstr("no stack"));
}

TEST(ReadSpeedscopeTest, EventsBecomeWeights) {
  const ProfileModel model = Read(R"({"$schema": "https://www.speedscope.app/file-format-schema.json",
    "profiles": [{"type": "evented", "name": "main", "unit": "milliseconds", "startValue": 0, "endValue": 9, "events": [
      {"type": "O", "frame": 0, "at": 1}, {"type": "O", "frame": 1, "at": 1.5}, {"type": "C", "frame": 1, "at": 3},
      {"type": "C", "frame": 0, "at": 5}, {"type": "O", "frame": 1, "at": 8}, {"type": "C", "frame": 1, "at": 9}]}],
    "shared": {"frames": [{"name": "a"}, {"name": "b", "line": 3, "file": "b.cs"}]}})");
  EXPECT_EQ(WeightsOf(model), (Weights{{"main a", 2'500'000}, {"main a;b", 1'500'000}, {"main b", 1'000'000}}));
  EXPECT_EQ(model.meta.unit, WeightUnit::kNanoseconds);
}

TEST(ReadSpeedscopeTest, DamagedFilesAreErrors) {
  const auto profile = [](absl::string_view body) {
    return absl::StrCat(R"({"$schema": "https://www.speedscope.app/file-format-schema.json", "shared": {"frames":)",
                        R"([{"name": "a"}]}, "profiles": [{"type": "sampled", "name": "x", "unit": "none", )", body,
                        "}]}");
  };
  EXPECT_EQ(Read(profile(R"("samples": [[0]], "weights": [2])")).total_weight, 2u);
  EXPECT_THAT(ErrorOf(profile(R"("samples": [[0]], "weights": [])")), HasSubstr("1 samples with 0 weights"));
  EXPECT_THAT(ErrorOf(profile(R"("samples": [[1]], "weights": [2])")), HasSubstr("frame 1"));
  EXPECT_THAT(ErrorOf(profile(R"("samples": [[0]], "weights": [-2])")), HasSubstr("negative"));
  EXPECT_THAT(ErrorOf(profile(R"("samples": [[0]], "weights": [1e30])")), HasSubstr("2^63"));
  EXPECT_THAT(ErrorOf(profile(R"("samples": [[0.5]], "weights": [1])")), HasSubstr("no index"));
  EXPECT_THAT(ErrorOf(profile(R"("samples": [[0)")), HasSubstr("damaged at byte"));
}

TEST(ReadSpeedscopeTest, TablesOfNothingAreErrors) {
  constexpr absl::string_view kBegin = R"({"$schema": "https://www.speedscope.app/file-format-schema.json", )";
  std::string profiles, frames, events;
  for (int i = 0; i < 200'000; ++i) {
    profiles += "{},";
    frames += "{},";
    events += "{},";
  }
  EXPECT_THAT(ErrorOf(absl::StrCat(kBegin, R"("profiles": [)", profiles, "{}]}")), HasSubstr("more than 100000"));
  EXPECT_THAT(ErrorOf(absl::StrCat(kBegin, R"("profiles": [{"events": [)", events, "{}]}]}")),
              HasSubstr("neither opens nor closes"));
  EXPECT_EQ(Read(absl::StrCat(kBegin, R"("shared": {"frames": [)", frames, "{}]}}")).frames.size(), 1u);
}

TEST(ReadSpeedscopeTest, ALineIsAWholeNumberFromOneOn) {
  constexpr absl::string_view kFrames =
      R"({"name": "a", "line": 57, "col": 9}, {"name": "b", "line": -1, "col": -1}, {"name": "c", "line": 1.5},
         {"name": "d", "line": 4294967295, "col": 4294967296}, {"name": "e", "line": "57"}, {"name": "f", "col": 2})";
  EXPECT_THAT(
      PlacesOf(Read(
          absl::StrCat(R"({"$schema": "https://www.speedscope.app/file-format-schema.json", "shared": {"frames": [)",
                       kFrames, "]}}"))),
      ElementsAre("a:57:9 none", "b:0:0 none", "c:0:0 none", "d:4294967295:0 none", "e:0:0 none", "f:0:0 none"));
}

TEST(ReadSpeedscopeTest, ProfilesOfDifferentUnitsAreAnError) {
  EXPECT_THAT(ErrorOf(R"({"$schema": "https://www.speedscope.app/file-format-schema.json", "profiles": [
    {"type": "sampled", "name": "a", "unit": "none", "samples": [], "weights": []},
    {"type": "sampled", "name": "b", "unit": "seconds", "samples": [], "weights": []}]})"),
              HasSubstr("different units"));
}

// A profile as the Go runtime's profiler writes it: two values, no labels, functions inlined into a location.
class ForeignPprof {
 public:
  ForeignPprof() { texts_ = {""}; }
  int64_t Text(const std::string& text) {
    texts_.push_back(text);
    return static_cast<int64_t>(texts_.size() - 1);
  }
  template <typename Tag, typename Fill>
  static std::string Message(Fill&& fill) {
    std::string bytes;
    protozero::pbf_builder<Tag> builder(bytes);
    fill(builder);
    return bytes;
  }
  void ValueType(pprof::Profile field, const std::string& type, const std::string& unit) {
    builder_.add_message(field, Message<pprof::ValueType>([&](auto& value) {
                           value.add_int64(pprof::ValueType::kType, Text(type));
                           value.add_int64(pprof::ValueType::kUnit, Text(unit));
                         }));
  }
  void Location(uint64_t id, const std::vector<std::string>& inner_first, uint64_t mapping = 0) {
    builder_.add_message(pprof::Profile::kLocation, Message<pprof::Location>([&](auto& location) {
                           location.add_uint64(pprof::Location::kId, id);
                           location.add_uint64(pprof::Location::kAddress, 0x1000 + id);
                           if (mapping != 0) location.add_uint64(pprof::Location::kMappingId, mapping);
                           for (const std::string& name : inner_first) {
                             location.add_message(pprof::Location::kLine, Message<pprof::Line>([&](auto& line) {
                                                    line.add_uint64(pprof::Line::kFunctionId, Function(name));
                                                  }));
                           }
                         }));
  }
  void LocationAtLine(uint64_t id, int64_t line_number, int64_t column) {
    builder_.add_message(pprof::Profile::kLocation, Message<pprof::Location>([&](auto& location) {
                           location.add_uint64(pprof::Location::kId, id);
                           location.add_message(pprof::Location::kLine, Message<pprof::Line>([&](auto& line) {
                                                  line.add_uint64(pprof::Line::kFunctionId, Function("main.main"));
                                                  line.add_int64(pprof::Line::kLine, line_number);
                                                  line.add_int64(pprof::Line::kColumn, column);
                                                }));
                         }));
  }
  void Mapping(uint64_t id, const std::string& file) {
    builder_.add_message(pprof::Profile::kMapping, Message<pprof::Mapping>([&](auto& mapping) {
                           mapping.add_uint64(pprof::Mapping::kId, id);
                           mapping.add_int64(pprof::Mapping::kFilename, Text(file));
                         }));
  }
  void Sample(const std::vector<uint64_t>& leaf_first, const std::vector<int64_t>& values, bool packed = true) {
    builder_.add_message(pprof::Profile::kSample, Message<pprof::Sample>([&](auto& sample) {
                           if (packed) {
                             sample.add_packed_uint64(pprof::Sample::kLocationId, leaf_first.begin(), leaf_first.end());
                           } else {
                             for (const uint64_t id : leaf_first) sample.add_uint64(pprof::Sample::kLocationId, id);
                           }
                           sample.add_packed_int64(pprof::Sample::kValue, values.begin(), values.end());
                         }));
  }
  // A sample of no frames with one label many times.
  void Labels(size_t count, absl::string_view key, const std::string& text) {
    const std::string label = Message<pprof::Label>([&](auto& one) {
      one.add_int64(pprof::Label::kKey, Text(std::string(key)));
      one.add_int64(pprof::Label::kStr, Text(text));
    });
    builder_.add_message(pprof::Profile::kSample, Message<pprof::Sample>([&](auto& sample) {
                           for (size_t i = 0; i < count; ++i) sample.add_message(pprof::Sample::kLabel, label);
                           const int64_t value = 1;
                           sample.add_packed_int64(pprof::Sample::kValue, &value, &value + 1);
                         }));
  }
  void Comments(size_t count) {
    const std::vector<int64_t> comments(count, 1);
    builder_.add_packed_int64(pprof::Profile::kComment, comments.begin(), comments.end());
  }
  std::string Bytes() {
    for (const std::string& function : functions_) builder_.add_message(pprof::Profile::kFunction, function);
    for (const std::string& text : texts_) builder_.add_string(pprof::Profile::kStringTable, text);
    return bytes_;
  }

 private:
  uint64_t Function(const std::string& name) {
    const uint64_t id = functions_.size() + 1;
    functions_.push_back(Message<pprof::Function>([&](auto& function) {
      function.add_uint64(pprof::Function::kId, id);
      function.add_int64(pprof::Function::kName, Text(name));
    }));
    return id;
  }
  std::string bytes_;
  protozero::pbf_builder<pprof::Profile> builder_{bytes_};
  std::vector<std::string> texts_, functions_;
};

TEST(ReadPprofTest, ForeignFilesWithInlinedFunctionsAndWithoutSymbols) {
  ForeignPprof file;
  file.ValueType(pprof::Profile::kSampleType, "samples", "count");
  file.ValueType(pprof::Profile::kSampleType, "cpu", "nanoseconds");
  file.Mapping(1, "/usr/bin/app");
  file.Mapping(2, "[kernel.kallsyms]");
  file.Location(1, {"main.main"}, 1);
  file.Location(2, {"small", "inner", "outer"}, 1);
  file.Location(3, {}, 2);
  file.Sample({3, 2, 1}, {4, 40'000'000});
  file.Sample({1}, {1, 10'000'000}, /*packed=*/false);
  const ProfileModel model = Read(file.Bytes());
  EXPECT_EQ(WeightsOf(model),
            (Weights{{" native:main.main;native:outer;inlined:inner;inlined:small;kernel:[no symbol at 0x1003]", 4},
                     {" native:main.main", 1}}));
  EXPECT_EQ(model.text(model.frames[0].module_path), "/usr/bin/app");
  EXPECT_EQ(model.text(model.frames[0].module), "app");
}

TEST(ReadPprofTest, LinesThatNoFileHasAreNotKnown) {
  ForeignPprof file;
  file.ValueType(pprof::Profile::kSampleType, "samples", "count");
  file.LocationAtLine(1, 57, 9);
  file.LocationAtLine(2, -1, 9);
  file.LocationAtLine(3, 4294967295, 4294967296);
  for (const uint64_t id : {1, 2, 3}) file.Sample({id}, {1});
  EXPECT_THAT(PlacesOf(Read(file.Bytes())),
              ElementsAre("main.main:57:9 none", "main.main:0:0 none", "main.main:4294967295:0 none"));
}

TEST(ReadPprofTest, TimesAreTakenWhereThereAreNoCounts) {
  ForeignPprof file;
  file.ValueType(pprof::Profile::kSampleType, "contentions", "count");
  file.ValueType(pprof::Profile::kSampleType, "delay", "milliseconds");
  file.Location(1, {"lock"});
  file.Sample({1}, {1, 7});
  const ProfileModel model = Read(file.Bytes());
  EXPECT_EQ(model.meta.unit, WeightUnit::kNanoseconds);
  EXPECT_EQ(model.total_weight, 7'000'000u);
}

TEST(ReadPprofTest, WhatCannotBeReadIsAnError) {
  ForeignPprof heap;
  heap.ValueType(pprof::Profile::kSampleType, "inuse_space", "bytes");
  EXPECT_THAT(ErrorOf(heap.Bytes()), HasSubstr("bytes"));
  ForeignPprof dangling;
  dangling.ValueType(pprof::Profile::kSampleType, "samples", "count");
  dangling.Sample({9}, {1});
  EXPECT_THAT(ErrorOf(dangling.Bytes()), HasSubstr("location 9"));
  ForeignPprof values;
  values.ValueType(pprof::Profile::kSampleType, "samples", "count");
  values.Sample({}, {1, 2});
  EXPECT_THAT(ErrorOf(values.Bytes()), HasSubstr("number of values"));
  ForeignPprof negative;
  negative.ValueType(pprof::Profile::kSampleType, "samples", "count");
  negative.Sample({}, {-3});
  EXPECT_THAT(ErrorOf(negative.Bytes()), HasSubstr("negative"));
  EXPECT_THAT(ErrorOf(absl::string_view("\x0a\x7f\x01", 3)), HasSubstr("no protobuf message"));
}

TEST(ReadPprofTest, ADeepStackIsRefusedWhateverItsLocationsHold) {
  ForeignPprof file;
  file.ValueType(pprof::Profile::kSampleType, "samples", "count");
  file.Location(1, std::vector<std::string>(256, "again"));
  file.Sample(std::vector<uint64_t>(1'000'000, 1), {1});
  const absl::StatusOr<ProfileModel> model = ReadProfile(file.Bytes());
  EXPECT_THAT(std::string(model.status().message()), HasSubstr("more than 4096 frames"));
}

TEST(ReadPprofTest, SmallSamplesOfManyFramesEndAtABudget) {
  ForeignPprof file;
  file.ValueType(pprof::Profile::kSampleType, "samples", "count");
  file.Location(1, std::vector<std::string>(256, "again"));
  for (int i = 0; i < 1000; ++i) file.Sample(std::vector<uint64_t>(15, 1), {1});
  EXPECT_THAT(ErrorOf(file.Bytes()), HasSubstr("more inlined functions"));
}

// A second would become many minutes, and the test's own limit ends it.
TEST(ReadPprofTest, TextsOfMegabytesMayBeReferredToOften) {
  const std::string name((1 << 20) - 1, 'a'), number = std::string(1 << 20, '0') + "7";
  ForeignPprof file;
  file.ValueType(pprof::Profile::kSampleType, "samples", "count");
  for (const absl::string_view key : {pprof::kCommLabel, pprof::kThreadLabel, pprof::kContainerLabel}) {
    file.Labels(1'000'000, key, name);
  }
  file.Labels(1'000'000, pprof::kTidLabel, number);
  file.Mapping(1, "/" + name);
  for (uint64_t id = 1; id <= 100'000; ++id) {
    file.Location(id, {}, 1);
    file.Sample({id}, {1});
  }
  const ProfileModel model = Read(file.Bytes());
  EXPECT_EQ(model.total_weight, 100'004u);
  EXPECT_EQ(model.text(model.threads[0].comm), name);
  EXPECT_EQ(model.text(model.frames[0].module), name);
}

TEST(ReadPprofTest, ManyTypesOfValuesAreAnErrorAndCommentsAreNot) {
  ForeignPprof file;
  for (int i = 0; i < 2000; ++i) file.ValueType(pprof::Profile::kSampleType, "samples", "count");
  EXPECT_THAT(ErrorOf(file.Bytes()), HasSubstr("more than 1024 values"));
  ForeignPprof talking;
  talking.ValueType(pprof::Profile::kSampleType, "samples", "count");
  talking.Comments(5000);
  EXPECT_TRUE(ReadProfile(talking.Bytes()).ok());
}

std::string Gzipped(absl::string_view text) {
  std::string bytes;
  const GzipStream::Sink sink = [&](absl::string_view piece) {
    bytes.append(piece.data(), piece.size());
    return absl::OkStatus();
  };
  GzipStream stream(sink);
  EXPECT_TRUE(stream.Write(text).ok());
  EXPECT_TRUE(stream.Finish().ok());
  return bytes;
}

TEST(GzipTest, AnyFormatMayBeCompressedAlsoInSeveralMembers) {
  EXPECT_EQ(WeightsOf(Read(Gzipped("web;main 1\n") + Gzipped("web;main 2\n"))), (Weights{{"web main", 3}}));
}

TEST(GzipTest, CutAndDamagedDataIsAnError) {
  const std::string whole = Gzipped("web;main 1\n");
  for (size_t size = 2; size < whole.size(); ++size) {
    EXPECT_THAT(ErrorOf(absl::string_view(whole).substr(0, size)), HasSubstr("ends too early")) << size;
  }
  std::string damaged = whole;
  damaged[damaged.size() - 6] = static_cast<char>(damaged[damaged.size() - 6] ^ 1);  // in the checksum
  EXPECT_THAT(ErrorOf(damaged), HasSubstr("damaged"));
}

TEST(GzipTest, ABombEndsAtTheLimit) {
  const std::string bomb = Gzipped(std::string(8 << 20, 'a'));
  EXPECT_LT(bomb.size(), size_t{1} << 16);
  EXPECT_EQ(Gunzip(bomb, 8 << 20)->size(), size_t{8} << 20);
  const absl::StatusOr<std::string> unpacked = Gunzip(bomb, 1 << 20);
  EXPECT_EQ(unpacked.status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(ReadProfileTest, NamesThatAreTooLongAreAnError) {
  const absl::StatusOr<ProfileModel> folded = ReadProfile(absl::StrCat("web;", std::string(2 << 20, 'a'), " 1\n"));
  EXPECT_THAT(std::string(folded.status().message()), HasSubstr("a name of 2097152 bytes"));
  const absl::StatusOr<ProfileModel> json = ReadProfile(absl::StrCat(
      R"({"format": "clrsampler-profile", "version": 1, "strings": [")", std::string(2 << 20, 'a'), R"("]})"));
  EXPECT_THAT(std::string(json.status().message()), HasSubstr("a name of 2097152 bytes"));
}

TEST(ReadProfileTest, DeepNestingIsAnError) {
  EXPECT_THAT(
      ErrorOf(absl::StrCat(R"({"format": "clrsampler-profile", "meta": {"account": )", std::string(1'000'000, '['))),
      HasSubstr("nested"));
  EXPECT_THAT(ErrorOf(absl::StrCat(R"({"$schema": "https://www.speedscope.app/file-format-schema.json", "x": )",
                                   std::string(1'000'000, '['))),
              HasSubstr("nested"));
}

TEST(ReadProfileTest, FilesOfOtherKindsAreNamed) {
  EXPECT_THAT(ErrorOf("{\"traceEvents\": []}"), HasSubstr("does not read"));
  EXPECT_THAT(ErrorOf("<!DOCTYPE html>"), HasSubstr("page or picture"));
  EXPECT_THAT(ErrorOf(R"({"format": "clrsampler-profile", "version": 2})"), HasSubstr("version 2"));
}

TEST(ReadProfileJsonTest, AnAccountOfManyKeysIsAnError) {
  const auto profile = [](absl::string_view account) {
    return absl::StrCat(R"({"format": "clrsampler-profile", "version": 1, "meta": {"account": )", account, "}}");
  };
  std::string values = "0", objects = "{}", keys = R"("k": 0)", containers = R"("k": {})";
  for (int i = 0; i < 1000; ++i) {
    values += ",0";
    objects += R"(,{"pid": 1, "samples": 2})";
    keys += absl::StrCat(",\"", i, "\": 0");
    containers += absl::StrCat(",\"", i, "\": []");
  }
  EXPECT_THAT(
      Read(profile(absl::StrCat(R"({"processes": [)", objects, R"(], "values": [)", values, "]}"))).meta.account_json,
      HasSubstr("samples"));
  EXPECT_THAT(ErrorOf(profile(absl::StrCat("{", keys, "}"))), HasSubstr("account is larger"));
  EXPECT_THAT(ErrorOf(profile(absl::StrCat("{", containers, "}"))), HasSubstr("account is larger"));
  EXPECT_THAT(ErrorOf(profile(absl::StrCat("{\"", std::string(200, 'k'), "\": 0}"))), HasSubstr("account is larger"));
}

TEST(ReadProfileJsonTest, LinesAndSourcesAreCheckedAsTheOtherTablesAre) {
  const auto profile = [](absl::string_view frames, absl::string_view sources) {
    return absl::StrCat(R"({"format": "clrsampler-profile", "version": 1, "strings": ["", "a", "a.cs"],
                            "line_kinds": ["none", "exact", "guessed"], "frames": {"name": [1], )",
                        frames, R"(}, "sources": )", sources, "}");
  };
  constexpr absl::string_view kLine = R"("line": [57], "column": [9], "line_kind": [1])";
  const ProfileModel model = Read(profile(kLine, R"({"file": [2, 0], "text": ["class A;", "of no file"]})"));
  EXPECT_THAT(PlacesOf(model), ElementsAre("a:57:9 exact"));
  EXPECT_THAT(model.sources, ElementsAre(ModelSource{model.sources.at(0).file, 0, "class A;"}));
  EXPECT_EQ(model.text(model.sources[0].file), "a.cs");
  EXPECT_THAT(PlacesOf(Read(profile(R"("line": [57], "line_kind": [2])", "{}"))), ElementsAre("a:57:0 none"))
      << "a kind of a newer version";
  EXPECT_THAT(PlacesOf(Read(profile(R"("column": [9], "line_kind": [1])", "{}"))), ElementsAre("a:0:0 none"));
  EXPECT_THAT(ErrorOf(profile(R"("line": [57], "line_kind": [3])", "{}")), HasSubstr("kind of lines 3"));
  EXPECT_THAT(ErrorOf(profile(R"("line": [57, 58])", "{}")), HasSubstr("frames.line has 2 entries and not 1"));
  EXPECT_THAT(ErrorOf(profile(R"("line": [-1])", "{}")), HasSubstr("negative"));
  EXPECT_THAT(ErrorOf(profile(kLine, R"({"file": [9]})")), HasSubstr("string 9"));
  EXPECT_THAT(ErrorOf(profile(kLine, R"({"file": [2], "url": [9]})")), HasSubstr("string 9"));
  EXPECT_THAT(ErrorOf(profile(kLine, R"({"file": [2], "text": ["", ""]})")), HasSubstr("sources.text has 2 entries"));
  EXPECT_THAT(ErrorOf(profile(kLine, R"({"file": [2], "url": [1, 1]})")), HasSubstr("sources.url has 2 entries"));
}

TEST(ReadProfileJsonTest, IndexesOutsideOfTheirTablesAreErrors) {
  const auto profile = [](absl::string_view nodes, absl::string_view samples) {
    return absl::StrCat(
        R"({"format": "clrsampler-profile", "version": 1, "strings": ["", "a"], "frames": {"name": [1]}, "nodes": )",
        nodes, R"(, "threads": {"comm": [1]}, "samples": )", samples, "}");
  };
  const char* const nodes = R"({"parent": [0, 0], "frame": [0, 0]})";
  EXPECT_EQ(WeightsOf(Read(profile(nodes, R"({"thread": [0], "stack": [1], "weight": [5], "later": [true]})"))),
            (Weights{{"a a", 5}}));
  EXPECT_THAT(ErrorOf(profile(nodes, R"({"thread": [0], "stack": [2]})")), HasSubstr("node 2"));
  EXPECT_THAT(ErrorOf(profile(nodes, R"({"thread": [7], "stack": [1]})")), HasSubstr("thread 7"));
  EXPECT_THAT(ErrorOf(profile(nodes, R"({"thread": [0, 0], "stack": [1]})")), HasSubstr("2 entries and not 1"));
  EXPECT_THAT(ErrorOf(profile(nodes, R"({"thread": [0], "stack": [1], "state": [1]})")), HasSubstr("state 1"));
  EXPECT_THAT(ErrorOf(profile(nodes, R"({"thread": [0], "stack": [-1]})")), HasSubstr("negative"));
  EXPECT_THAT(ErrorOf(profile(nodes, R"({"thread": [0], "stack": [4294967296]})")), HasSubstr("too large"));
  EXPECT_THAT(ErrorOf(profile(nodes, R"({"thread": [0], "stack": ["1"]})")), HasSubstr("no number"));
  EXPECT_THAT(ErrorOf(profile(R"({"parent": [0, 1], "frame": [0, 0]})", "{}")), HasSubstr("before its parent"));
  EXPECT_THAT(ErrorOf(profile(R"({"parent": [0, 0], "frame": [0, 1]})", "{}")), HasSubstr("frame 1"));
}

}  // namespace
}  // namespace clrsampler
