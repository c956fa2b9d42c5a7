#include "clr/r2r_methods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "formats/names/runtime_names.h"
#include "formats/unwind/arm64_unwind.h"
#include "formats/unwind/frame_steps.h"
#include "formats/unwind/unwind_info.h"
#include "formats/unwind/x64_code.h"
#include "os/digest.h"
#include "os/file_io.h"
#include "status/notices.h"
#include "test_paths.h"
#include "unit/clr/bundle_host.h"
#include "unit/formats/pe/fixture.h"
#include "unit/process/mapping_of_file.h"
#include "unit/symbol_server/fake_symbol_files.h"

namespace clrsampler {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr uint64_t kImageBase = 0x7f0000010000;

// A process that maps files of a folder of this test, seen as ourselves: the files are opened through /proc/self/root.
class R2rMethodsTest : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/r2r_methods_test.XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    top_ = folder_ = path;
  }
  void TearDown() override { std::filesystem::remove_all(top_); }
  // Files are remembered by path, as they are in a run: other content stands under another path.
  void UseFolder(const std::string& name) {
    folder_ = top_ + "/" + name;
    std::filesystem::create_directory(folder_);
  }

  void Copy(const std::string& fixture_folder) {
    for (const auto& file : std::filesystem::directory_iterator(absl::StrCat(TestData("r2r/"), fixture_folder))) {
      std::filesystem::copy(file.path(), folder_ + "/" + file.path().filename().string());
    }
  }
  void Write(const std::string& name, absl::string_view content) {
    std::ofstream(folder_ + "/" + name, std::ios::binary)
        .write(content.data(), static_cast<std::streamsize>(content.size()));
  }
  Mapping Map(const std::string& name, uint64_t file_offset = 0) {
    return MappingOfFile(folder_ + "/" + name, kImageBase, 0, file_offset);
  }
  std::optional<Frame> At(const Mapping& mapping, uint64_t file_offset, uint32_t incarnation = 1) {
    Process process(ProcessKey{1, incarnation}, TargetFiles("/proc", static_cast<uint32_t>(getpid())));
    process.ends = ends_;
    const uint64_t address = mapping.start + file_offset - mapping.file_offset;
    const auto resolution = methods_.Resolve({process, &mapping, address + 1, address, MonotonicTime{5}});
    if (!resolution) return std::nullopt;
    return frames_.at(resolution->frame);
  }
  // Frames of all bytes of a file, each distinct one with the first offset.
  std::map<std::string, uint64_t> Everything(const Mapping& mapping) {
    std::map<std::string, uint64_t> texts;
    for (uint64_t offset = mapping.file_offset; offset < mapping.file_offset + (mapping.end - mapping.start);
         ++offset) {
      if (const auto frame = At(mapping, offset)) texts.emplace(frame->text, offset);
    }
    return texts;
  }

  std::string top_, folder_;
  ImageFiles images_;
  const std::shared_ptr<ProgramEnds> ends_ = std::make_shared<ProgramEnds>();
  FrameTable frames_;
  R2rMethods methods_{&images_, &frames_, NameStyle::kRaw};
};

TEST_F(R2rMethodsTest, NamesAnImageFromItsOwnTables) {
  Write("shapes.dll", ReadFixture("10.0.14-x64/shapes.dll"));
  const FixtureMap map = ReadFixtureMap("10.0.14-x64/shapes.ni.r2rmap");
  const std::string bytes = ReadFixture("10.0.14-x64/shapes.dll");
  const auto pe = PeImage::Parse(AsBytes(bytes));
  const Mapping mapping = Map("shapes.dll");
  for (const auto& [rva, text] : map.names) {
    const uint64_t offset = *pe->OffsetOfRva(rva);
    const auto frame = At(mapping, offset);
    ASSERT_TRUE(frame.has_value());
    EXPECT_EQ(frame->kind, FrameKind::kR2r);
    EXPECT_EQ(frame->source, NameSource::kR2rImage);
    EXPECT_EQ(frame->module, "shapes");
    EXPECT_EQ(*frame->image, (ImageIdentity{.path = mapping.path, .file_hash = HeadTailLengthHash(AsBytes(bytes))}));
    // The last byte of the method is its own as well.
    EXPECT_EQ(At(mapping, offset + map.bytes.at(rva) - 1), frame);
  }
  EXPECT_EQ(methods_.counters().methods_named, map.names.size());
  EXPECT_EQ(methods_.counters().images, 1u);
}

// The image is one of many processes, and one of them may have no room for names.
TEST_F(R2rMethodsTest, ARefusalIsNotKept) {
  Write("shapes.dll", ReadFixture("10.0.14-x64/shapes.dll"));
  const auto [rva, text] = *ReadFixtureMap("10.0.14-x64/shapes.ni.r2rmap").names.begin();
  const std::string bytes = ReadFixture("10.0.14-x64/shapes.dll");
  const uint64_t offset = *PeImage::Parse(AsBytes(bytes))->OffsetOfRva(rva);
  const Mapping mapping = Map("shapes.dll");
  FrameRoom none;
  frames_.SetRoom(&none);
  EXPECT_EQ(At(mapping, offset)->text, "[function of a program with too many names]");
  frames_.SetRoom(nullptr);
  EXPECT_TRUE(At(mapping, offset)->named());
}

TEST_F(R2rMethodsTest, TablesAreThoseThatNamesComeFrom) {
  Write("shapes.dll", ReadFixture("10.0.14-x64/shapes.dll"));
  Write("text.dll", "no image");
  const FixtureMap map = ReadFixtureMap("10.0.14-x64/shapes.ni.r2rmap");
  Process process(ProcessKey{1, 1}, TargetFiles("/proc", static_cast<uint32_t>(getpid())));
  const Mapping mapping = Map("shapes.dll");
  const R2rImage* const tables = methods_.TablesAt(process, mapping, mapping.start).image;
  ASSERT_NE(tables, nullptr);
  EXPECT_EQ(tables->name(), "shapes");
  EXPECT_TRUE(tables->BeginsAt(map.names.begin()->first));
  EXPECT_EQ(methods_.TablesAt(process, mapping, mapping.start).image, tables);
  EXPECT_TRUE(At(mapping, *tables->pe().OffsetOfRva(map.names.begin()->first)).has_value());
  EXPECT_EQ(methods_.counters().images, 1u) << "read once for all";
  const Mapping text = Map("text.dll");
  EXPECT_EQ(methods_.TablesAt(process, text, text.start).image, nullptr);
  const R2rTables again = methods_.TablesAt(process, mapping, mapping.start);
  EXPECT_TRUE(again.assemblies->Open("shapes").has_value()) << "what lies beside the image";
  EXPECT_FALSE(again.assemblies->Open("nobody").has_value());
}

TEST_F(R2rMethodsTest, CodeOutsideFunctionsHasNoName) {
  Copy("10.0.14-x64");
  const FixtureMap map = ReadFixtureMap("10.0.14-x64/shapes.ni.r2rmap");
  const std::string bytes = ReadFixture("10.0.14-x64/shapes.dll");
  const auto pe = PeImage::Parse(AsBytes(bytes));
  const Mapping mapping = Map("shapes.dll");
  const auto first = *map.names.begin();
  const auto frame = At(mapping, *pe->OffsetOfRva(first.first) + map.bytes.at(first.first));  // padding behind 6 bytes
  ASSERT_TRUE(frame.has_value());
  EXPECT_FALSE(frame->named());
  EXPECT_EQ(frame->text, "[r2r unknown shapes.dll]");
  EXPECT_EQ(frame->kind, FrameKind::kR2r);
  EXPECT_EQ(methods_.counters().outside_functions, 1u);
  EXPECT_EQ(At(mapping, 0), std::nullopt);  // headers are no code
}

TEST_F(R2rMethodsTest, ThunksThatPrepareAMethodAreStubs) {
  Copy("10.0.14-x64");
  const std::string bytes = ReadFixture("10.0.14-x64/shapes.dll");
  const auto pe = PeImage::Parse(AsBytes(bytes));
  const R2rSection* thunks = pe->r2r()->core.Find(R2rSectionType::kDelayLoadMethodCallThunks);
  const auto frame = At(Map("shapes.dll"), *pe->OffsetOfRva(thunks->range.rva));
  ASSERT_TRUE(frame.has_value());
  EXPECT_TRUE(frame->named());
  EXPECT_EQ(frame->text, "stub MethodCallThunk");
  EXPECT_EQ(methods_.counters().outside_functions, 0u);
}

TEST_F(R2rMethodsTest, TheMapBesideTheImageIsUsedAndAgrees) {
  for (const char* version : {"8.0.30-x64", "9.0.19-arm64", "10.0.14-x64", "10.0.14-x64-hot-cold"}) {
    UseFolder(version);
    Copy(version);
    const Mapping mapping = Map("shapes.dll");
    const uint64_t named_before = methods_.counters().methods_named;
    std::set<std::string> texts;
    for (const auto& [text, offset] : Everything(mapping)) {
      const auto frame = At(mapping, offset);
      if (!frame->named() || text == "stub MethodCallThunk") continue;  // of which a map has no row
      EXPECT_EQ(frame->source, NameSource::kR2rMap) << text;
      texts.insert(text);
    }
    std::set<std::string> rows;
    for (const auto& [rva, text] : ReadFixtureMap(absl::StrCat(version, "/shapes.ni.r2rmap")).names) rows.insert(text);
    EXPECT_EQ(texts, rows);  // raw style: the map's own text; cold parts and funclets add none
    EXPECT_EQ(methods_.counters().methods_named - named_before, 66u);
  }
  EXPECT_EQ(methods_.counters().map_disagreements, 0u);
  EXPECT_EQ(methods_.counters().maps_used, 4u);
  EXPECT_EQ(methods_.counters().maps_rejected, 0u);
}

// The fields that we read from the image and those that a reader of the map gets give the same text. In the full style
// a generic method keeps its own variables, as in the runtime's text, which the map has replaced.
TEST_F(R2rMethodsTest, TheSameMethodReadsTheSameFromMapAndImage) {
  for (const char* version : {"8.0.30-arm64", "9.0.19-x64", "10.0.14-x64"}) {
    const std::string bytes = ReadFixture(absl::StrCat(version, "/shapes.dll"));
    const auto image = OpenR2r(bytes);
    ASSERT_TRUE(image.ok());
    FixtureOpener opener("");
    for (const auto& [rva, text] : ReadFixtureMap(absl::StrCat(version, "/shapes.ni.r2rmap")).names) {
      const uint32_t method = (*image)->Find(rva)->method;
      const MethodName written = (*image)->Name(method, opener)->name;
      const MethodName replaced = (*image)->Name(method, opener, MethodVariables::kReplaced)->name;
      MethodName row = ParseR2rMapName(text);
      row.module = written.module;
      EXPECT_EQ(FrameText(written, NameStyle::kShort), FrameText(row, NameStyle::kShort));
      EXPECT_EQ(FrameText(replaced, NameStyle::kFull), FrameText(row, NameStyle::kFull));
    }
  }
}

// The unwind data's words about a prologue, as the instructions have it. Frame pointers are in the latter only.
bool SaysWhatTheCodeSays(const std::string& unwind, std::span<const std::byte> code) {
  const auto info = UnwindInfo::Parse(AsBytes(unwind));
  if (!info.ok()) return false;
  const Prologue prologue = DecodePrologue(code);
  return std::equal(info->codes.rbegin(), info->codes.rend(), prologue.codes.begin(),
                    std::min(prologue.codes.begin() + info->codes.size(), prologue.codes.end()));
}

TEST_F(R2rMethodsTest, BodiesComeWithTheUnwindDataOfTheirParts) {
  Process process(ProcessKey{1, 1}, TargetFiles("/proc", static_cast<uint32_t>(getpid())));
  for (const char* version : {"8.0.30-x64", "10.0.14-x64", "10.0.14-x64-hot-cold"}) {
    UseFolder(version);
    Copy(version);
    const std::string bytes = ReadFixture(absl::StrCat(version, "/shapes.dll"));
    const auto image = OpenR2r(bytes);
    ASSERT_TRUE(image.ok()) << image.status();
    const Mapping mapping = Map("shapes.dll");
    size_t funclets = 0;
    for (const auto& [rva, text] : ReadFixtureMap(absl::StrCat(version, "/shapes.ni.r2rmap")).names) {
      const uint64_t address = mapping.start + *(*image)->pe().OffsetOfRva(rva);
      const auto body = methods_.BodyOf({process, &mapping, address, address, MonotonicTime{5}});
      ASSERT_TRUE(body.has_value()) << text;
      ASSERT_FALSE(body->unwind.empty()) << text;
      EXPECT_EQ(body->unwind.front().begin, 0u);
      EXPECT_EQ(body->unwind.back().end, body->bytes->size());
      uint32_t least = 0;
      for (const CodeUnwind& part : body->unwind) {
        funclets += part.begin != 0 ? 1 : 0;
        EXPECT_GE(part.begin, least);
        least = part.end;
        const auto code = AsBytes(*body->bytes).subspan(part.begin, part.end - part.begin);
        EXPECT_TRUE(SaysWhatTheCodeSays(part.bytes, code)) << version << " " << text << " " << part.begin;
      }
    }
    EXPECT_GT(funclets, 0u) << version;
  }
}

TEST_F(R2rMethodsTest, BodiesOfArm64ComeWithTheRecordsOfTheirParts) {
  Process process(ProcessKey{1, 1}, TargetFiles("/proc", static_cast<uint32_t>(getpid())));
  for (const char* version : {"8.0.30-arm64", "9.0.19-arm64", "10.0.14-arm64"}) {
    UseFolder(version);
    Copy(version);
    const std::string bytes = ReadFixture(absl::StrCat(version, "/shapes.dll"));
    const auto pe = PeImage::Parse(AsBytes(bytes));
    const Mapping mapping = Map("shapes.dll");
    size_t funclets = 0;
    for (const auto& [rva, text] : ReadFixtureMap(absl::StrCat(version, "/shapes.ni.r2rmap")).names) {
      const uint64_t address = mapping.start + *pe->OffsetOfRva(rva);
      const auto body = methods_.BodyOf({process, &mapping, address, address, MonotonicTime{5}});
      ASSERT_TRUE(body.has_value()) << text;
      ASSERT_FALSE(body->unwind.empty()) << text;
      EXPECT_EQ(body->unwind.back().end, body->bytes->size());
      for (const CodeUnwind& part : body->unwind) {
        funclets += part.begin != 0 ? 1 : 0;
        const auto code = AsBytes(*body->bytes).subspan(part.begin, part.end - part.begin);
        const auto info = Arm64UnwindInfo::Parse(AsBytes(part.bytes));
        ASSERT_TRUE(info.ok()) << text << " " << info.status();
        EXPECT_EQ(info->function_bytes, code.size()) << text;
        EXPECT_EQ(info->bytes, part.bytes.size()) << text;
        // Every managed function keeps a frame record.
        const auto steps = FrameStepsOfArm64(AsBytes(part.bytes), code);
        ASSERT_TRUE(steps.ok()) << text << " " << steps.status();
        EXPECT_TRUE(std::any_of(steps->begin(), steps->end(), [](const FrameStep& step) {
          return step.rule == FrameRule::kSaved && step.reg == 30;
        })) << text;
      }
    }
    EXPECT_GT(funclets, 0u) << version;
  }
}

TEST_F(R2rMethodsTest, AMapOfAnotherBuildIsRejected) {
  // Same source and MVID, so the same signature; other code. Only the addresses give it away.
  Write("shapes.dll", ReadFixture("10.0.14-x64-hot-cold/shapes.dll"));
  Write("shapes.ni.r2rmap", ReadFixture("10.0.14-x64/shapes.ni.r2rmap"));
  ASSERT_EQ(ReadFixtureMap("10.0.14-x64/shapes.ni.r2rmap").signature,
            ReadFixtureMap("10.0.14-x64-hot-cold/shapes.ni.r2rmap").signature);
  const Mapping mapping = Map("shapes.dll");
  for (const auto& [text, offset] : Everything(mapping)) {
    const auto frame = At(mapping, offset);
    EXPECT_TRUE(!frame->named() || frame->source == NameSource::kR2rImage) << text;
  }
  EXPECT_EQ(methods_.counters().maps_used, 0u);
  EXPECT_EQ(methods_.counters().maps_rejected, 1u);
}

// Signature and addresses are right, one name is not: the image's own tables stand, and it is said once.
TEST_F(R2rMethodsTest, AMapThatContradictsItsImageIsToldOf) {
  Notices notices;
  methods_.ReportTo(&notices);
  const FixtureMap truth = ReadFixtureMap("10.0.14-x64/shapes.ni.r2rmap");
  std::string map = ReadFixture("10.0.14-x64/shapes.ni.r2rmap");
  const auto& [rva, text] = *truth.names.begin();
  const size_t at = map.find(text);
  ASSERT_NE(at, std::string::npos);
  map.replace(at, text.size(), "Another.Name::Altogether()");
  const std::string bytes = ReadFixture("10.0.14-x64/shapes.dll");
  Write("shapes.dll", bytes);
  Write("shapes.ni.r2rmap", map);
  const Mapping mapping = Map("shapes.dll");
  Everything(mapping);
  const auto frame = At(mapping, *PeImage::Parse(AsBytes(bytes))->OffsetOfRva(rva));
  ASSERT_TRUE(frame.has_value());
  EXPECT_EQ(frame->source, NameSource::kR2rImage);
  EXPECT_THAT(frame->text, testing::Not(HasSubstr("Altogether")));
  EXPECT_EQ(methods_.counters().maps_used, 1u);
  EXPECT_EQ(methods_.counters().map_disagreements, 1u);
  ASSERT_EQ(notices.kept().size(), 1u);
  EXPECT_EQ(notices.kept()[0].kind, "r2rmap_disagrees");
  EXPECT_THAT(notices.kept()[0].message, HasSubstr("shapes.dll"));
}

TEST_F(R2rMethodsTest, EveryFieldOfTheMapsHeaderIsChecked) {
  const std::string image = ReadFixture("10.0.14-x64/shapes.dll");
  const std::string map = ReadFixture("10.0.14-x64/shapes.ni.r2rmap");
  const std::pair<std::string, std::string> changes[] = {{"FFFFFFFE 00 1", "FFFFFFFE 00 2"},
                                                         {"FFFFFFFD 00 2", "FFFFFFFD 00 1"},
                                                         {"FFFFFFFC 00 3", "FFFFFFFC 00 2"},
                                                         {"FFFFFFFB 00 1", "FFFFFFFB 00 2"},
                                                         {"FFFFFFFF 00 ", "FFFFFFFF 00 0"}};
  uint64_t rejected = 0;
  for (const auto& [from, to] : changes) {
    std::string changed = map;
    const size_t at = changed.find(from);
    ASSERT_NE(at, std::string::npos);
    // The last change shifts the signature by a digit; keep its length.
    if (to.size() > from.size()) changed.erase(at + from.size() + 31, 1);
    changed.replace(at, from.size(), to);
    UseFolder(absl::StrCat(rejected));
    Write("shapes.dll", image);
    Write("shapes.ni.r2rmap", changed);
    Everything(Map("shapes.dll"));
    EXPECT_EQ(methods_.counters().maps_rejected, ++rejected) << to;
  }
  EXPECT_EQ(methods_.counters().maps_used, 0u);
}

TEST_F(R2rMethodsTest, CompositesUseTheirComponentsAndTheOwnersMap) {
  Copy("10.0.14-x64-composite");
  std::filesystem::remove(folder_ + "/both.r2r.ni.r2rmap");
  const Mapping mapping = Map("both.r2r.dll");
  std::set<std::string> modules;
  for (const auto& [text, offset] : Everything(mapping)) {
    const auto frame = At(mapping, offset);
    if (frame->named() && text != "stub MethodCallThunk") modules.insert(frame->module);
  }
  EXPECT_THAT(modules, testing::ElementsAre("library", "shapes"));
  EXPECT_EQ(methods_.counters().missing_assemblies, 0u);
  // The component itself is mapped executable too, but has no code.
  EXPECT_TRUE(Everything(Map("shapes.dll")).empty());
}

TEST_F(R2rMethodsTest, AMissingComponentIsSaidAndTriedAgainForTheNextProcess) {
  Copy("10.0.14-x64-composite");
  std::filesystem::remove(folder_ + "/both.r2r.ni.r2rmap");
  std::filesystem::rename(folder_ + "/library.dll", folder_ + "/away");
  const Mapping mapping = Map("both.r2r.dll");
  uint64_t place = 0;
  for (const auto& [text, offset] : Everything(mapping)) {
    if (text.find("assembly library not found") == std::string::npos) continue;
    EXPECT_THAT(text, StartsWith("[r2r library!0x0600"));
    EXPECT_FALSE(At(mapping, offset)->named());
    place = offset;
  }
  ASSERT_NE(place, 0u);
  EXPECT_GE(methods_.counters().methods_by_token, 1u);
  EXPECT_EQ(methods_.counters().missing_assemblies, 1u);
  std::filesystem::rename(folder_ + "/away", folder_ + "/library.dll");
  const auto second = At(mapping, place, 2);
  ASSERT_TRUE(second.has_value());
  EXPECT_TRUE(second->named());
  EXPECT_EQ(second->module, "library");
}

TEST_F(R2rMethodsTest, AMapFromASymbolServerStandsInForAMissingComponent) {
  Copy("10.0.14-x64-composite");
  std::filesystem::rename(folder_ + "/both.r2r.ni.r2rmap", folder_ + "/served");
  std::filesystem::remove(folder_ + "/library.dll");
  FakeSymbolFiles files;
  R2rMethods methods(&images_, &frames_, NameStyle::kRaw, {}, &files);
  const Mapping mapping = Map("both.r2r.dll");
  Process process(ProcessKey{1, 1}, TargetFiles("/proc", static_cast<uint32_t>(getpid())));
  const auto at = [&](uint64_t offset) {
    const uint64_t address = mapping.start + offset;
    const auto resolution = methods.Resolve({process, &mapping, address + 1, address, MonotonicTime{5}});
    return resolution ? frames_.at(resolution->frame) : Frame{};
  };
  uint64_t place = 0;
  for (uint64_t offset = 0; offset < mapping.end - mapping.start && place == 0; ++offset) {
    if (at(offset).text.find("assembly library not found") != std::string::npos) place = offset;
  }
  ASSERT_NE(place, 0u);
  ASSERT_EQ(files.asked.size(), 1u);
  EXPECT_EQ(files.asked[0].file_name, "both.r2r.ni.r2rmap");
  // Another image's map is not believed, and not asked for again.
  files.Arrives(TestData("r2r/10.0.14-x64/shapes.ni.r2rmap"));
  EXPECT_FALSE(at(place).named());
  EXPECT_EQ(methods.counters().maps_rejected, 1u);
  ++files.generations;
  EXPECT_FALSE(at(place).named());
  EXPECT_EQ(methods.counters().maps_rejected, 1u);

  FakeSymbolFiles good;
  R2rMethods second(&images_, &frames_, NameStyle::kRaw, {}, &good);
  const uint64_t address = mapping.start + place;
  const auto resolve = [&] {
    return frames_.at(second.Resolve({process, &mapping, address + 1, address, MonotonicTime{5}})->frame);
  };
  EXPECT_FALSE(resolve().named());
  const uint64_t generation = second.Generation(process.key);
  good.Arrives(folder_ + "/served");
  EXPECT_GT(second.Generation(process.key), generation);
  EXPECT_EQ(resolve().source, NameSource::kR2rMap);
  EXPECT_EQ(second.counters().maps_fetched, 1u);
}

TEST_F(R2rMethodsTest, ImagesInsideASingleFileHost) {
  const std::string image = ReadFixture("10.0.14-x64/shapes.dll");
  Write("host", BundleHost({{"first.txt", "no image"}, {"shapes.dll", image}}));
  constexpr uint64_t kOffset = kBundleFiles + 64;
  Write("shapes.ni.r2rmap", ReadFixture("10.0.14-x64/shapes.ni.r2rmap"));  // beside the host

  const Mapping mapping = Map("host", kBundleFiles);
  const auto pe = PeImage::Parse(AsBytes(image));
  for (const auto& [rva, text] : ReadFixtureMap("10.0.14-x64/shapes.ni.r2rmap").names) {
    const auto frame = At(mapping, kOffset + *pe->OffsetOfRva(rva));
    ASSERT_TRUE(frame.has_value());
    EXPECT_EQ(frame->text, text);
    EXPECT_EQ(frame->source, NameSource::kR2rMap);
  }
  EXPECT_EQ(methods_.counters().bundles, 1u);
  EXPECT_EQ(At(mapping, kBundleFiles), std::nullopt);  // in front of the image
  EXPECT_EQ(At(Map("host"), 100), std::nullopt);       // the host's own code
}

TEST_F(R2rMethodsTest, OtherMappingsAreLeftToOthers) {
  Write("native.so", std::string("\x7F"
                                 "ELF\2\1",
                                 6) +
                         std::string(200, '\0'));
  Write("text.dll", "MZ but nothing else");
  EXPECT_EQ(At(Map("native.so"), 100), std::nullopt);
  EXPECT_EQ(At(Map("text.dll"), 5), std::nullopt);
  Mapping memory = Map("text.dll");
  memory.kind = MappingKind::kJitMemory;
  EXPECT_EQ(At(memory, 5), std::nullopt);
  Mapping gone = Map("text.dll");
  gone.path = folder_ + "/gone.dll";
  EXPECT_EQ(At(gone, 5), std::nullopt);
  EXPECT_EQ(methods_.counters().unreadable_files, 1u);
}

TEST_F(R2rMethodsTest, AnImageThatContradictsItselfSaysSo) {
  std::string bytes = ReadFixture("10.0.14-x64/shapes.dll");
  const auto pe = PeImage::Parse(AsBytes(bytes));
  const uint64_t table = *pe->OffsetOfRva(pe->r2r()->core.Find(R2rSectionType::kRuntimeFunctions)->range.rva);
  bytes[table + 13] = 0;
  Write("shapes.dll", bytes);
  const auto frame = At(Map("shapes.dll"), 0x300);
  ASSERT_TRUE(frame.has_value());
  EXPECT_FALSE(frame->named());
  EXPECT_THAT(frame->text, StartsWith("[r2r shapes.dll: R2R 16.0: R2R tables: runtime function 1 is out of order"));
  EXPECT_EQ(methods_.counters().images_refused, 1u);
}

TEST_F(R2rMethodsTest, AFileThatShrinksGivesNoNames) {
  Write("shapes.dll", ReadFixture("10.0.14-x64/shapes.dll"));
  const std::string bytes = ReadFixture("10.0.14-x64/shapes.dll");
  const auto pe = PeImage::Parse(AsBytes(bytes));
  const Mapping mapping = Map("shapes.dll");
  const uint64_t offset = *pe->OffsetOfRva(ReadFixtureMap("10.0.14-x64/shapes.ni.r2rmap").names.begin()->first);
  ASSERT_TRUE(At(mapping, offset)->named());
  std::filesystem::resize_file(folder_ + "/shapes.dll", 0);
  uint64_t answers = 0;
  for (uint64_t at = 0x200; at < bytes.size(); ++at) answers += At(mapping, at).has_value();
  EXPECT_EQ(answers, 0u);
  EXPECT_EQ(methods_.counters().images_damaged, 1u);
}

TEST_F(R2rMethodsTest, ProcessesShareImagesAndTheEndOfOneKeepsOthers) {
  Write("shapes.dll", ReadFixture("10.0.14-x64/shapes.dll"));
  const Mapping mapping = Map("shapes.dll");
  Everything(mapping);
  const uint64_t named = methods_.counters().methods_named;
  for (uint32_t process = 2; process < 100; ++process) {
    ASSERT_TRUE(At(mapping, 0x1000, process).has_value());
    ends_->Announce({1, process});
  }
  EXPECT_EQ(methods_.counters().images, 1u);
  EXPECT_EQ(methods_.counters().methods_named, named);
  EXPECT_LT(methods_.heap_bytes(), 20000u);
}

}  // namespace
}  // namespace clrsampler
