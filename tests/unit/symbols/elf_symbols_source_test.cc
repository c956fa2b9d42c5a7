#include "symbols/elf_symbols_source.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/auxv.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdlib>
#include <filesystem>
#include <map>

#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"
#include "formats/proc/maps_text.h"
#include "os/digest.h"
#include "os/file_io.h"
#include "symbols/debug_file.h"
#include "test_paths.h"
#include "unit/formats/elf/find_symbol.h"
#include "unit/formats/elf/linked_image.h"
#include "unit/formats/runtime/runtime_image_builder.h"
#include "unit/process/hanging_tape.h"
#include "unit/process/mapping_of_file.h"

namespace clrsampler {
namespace {

using testing::StartsWith;

// Our own process as target; mappings are made up over files, as if the whole file were mapped at kBase.
class ElfSymbolsSourceTest : public testing::Test {
 protected:
  static constexpr uint64_t kBase = 0x7f0000000000;

  ElfSymbolsSourceTest()
      : process_(ProcessKey{static_cast<uint32_t>(getpid()), 1},
                 TargetFiles("/proc", static_cast<uint32_t>(getpid()))) {}

  Mapping MappingOf(const std::string& path) { return MappingOfFile(path, kBase); }

  std::optional<Frame> At(const Mapping& mapping, uint64_t address, NameStyle style = NameStyle::kShort,
                          const std::string& host_debug_root = "/nowhere") {
    if (!source_ || style != style_ || root_ != host_debug_root) {
      source_ = std::make_unique<ElfSymbolsSource>(images_, frames_, notices_, style,
                                                   ElfSymbolsSource::Options{host_debug_root, symbol_files_});
      style_ = style;
      root_ = host_debug_root;
    }
    const auto resolution = source_->Resolve({process_, &mapping, address, address, MonotonicTime{1}});
    if (!resolution) return std::nullopt;
    return frames_.at(resolution->frame);
  }

  // Where a symbol of the whole fixture lies in the mapping.
  static uint64_t AddressOf(const std::string& file, absl::string_view symbol) {
    const std::string bytes = *ReadWholeFile(file, 256 << 20);
    const auto image = ElfImage::Parse(AsBytes(bytes));
    const auto found = FindSymbol(*image, symbol);
    EXPECT_TRUE(found.has_value()) << symbol;
    return kBase + image->ToOffset(found->address)->value;
  }

  ImageFiles images_;
  FrameTable frames_;
  Notices notices_;
  Process process_;
  std::unique_ptr<ElfSymbolsSource> source_;
  NameStyle style_ = NameStyle::kShort;
  std::string root_;
  SymbolFiles* symbol_files_ = nullptr;
};

std::string BuildIdOf(const std::string& path) {
  const std::string bytes = *ReadWholeFile(path, 64 << 20);
  return BuildIdText(ElfImage::Parse(AsBytes(bytes))->build_id());
}

TEST_F(ElfSymbolsSourceTest, StylesOfASymbol) {
  const std::string file = ElfFixture("libwhole.so");
  const Mapping mapping = MappingOf(file);
  const uint64_t address = AddressOf(file, "_ZNK4shop5Order5TotalEi") + 1;
  EXPECT_EQ(At(mapping, address)->text, "shop::Order::Total");
  EXPECT_EQ(At(mapping, address)->source, NameSource::kElfSymbols);
  EXPECT_EQ(At(mapping, address)->module, "libwhole.so");
  EXPECT_EQ(At(mapping, address, NameStyle::kFull)->text, "libwhole.so!shop::Order::Total(int) const");
  EXPECT_EQ(At(mapping, address, NameStyle::kRaw)->text, "_ZNK4shop5Order5TotalEi");
}

TEST_F(ElfSymbolsSourceTest, AFrameSaysWhatALinkerMustKnow) {
  const std::string file = ElfFixture("libwhole.so");
  const std::string whole = *ReadWholeFile(file, 64 << 20);
  const auto symbol = FindSymbol(*ElfImage::Parse(AsBytes(whole)), "_ZNK4shop5Order5TotalEi");
  for (const NameStyle style : {NameStyle::kShort, NameStyle::kFull, NameStyle::kRaw}) {
    const auto frame = At(MappingOf(file), AddressOf(file, "_ZNK4shop5Order5TotalEi") + 1, style);
    EXPECT_EQ(frame->symbol, "_ZNK4shop5Order5TotalEi");
    EXPECT_EQ(frame->image->path, file);
    EXPECT_EQ(frame->address, symbol->address.value);
    EXPECT_EQ(frame->size, symbol->size);
  }
}

TEST_F(ElfSymbolsSourceTest, EveryFrameOfAnImageSaysWhichBuildItIs) {
  const std::string file = ElfFixture("libwhole.so");
  const std::string hash = HeadTailLengthHash(AsBytes(*ReadWholeFile(file, 64 << 20)));
  const Mapping mapping = MappingOf(file);
  // The last has no name: the headers are no function.
  for (const uint64_t address : {AddressOf(file, "_ZNK4shop5Order5TotalEi") + 1, mapping.start}) {
    const auto frame = At(mapping, address);
    ASSERT_TRUE(frame.has_value());
    EXPECT_EQ(*frame->image, (ImageIdentity{file, BuildIdOf(file), hash}));
  }
}

TEST_F(ElfSymbolsSourceTest, AStrippedLibraryIsNamedByTheDebugFileBesideIt) {
  const Mapping mapping = MappingOf(ElfFixture("libstripped.so"));
  EXPECT_EQ(At(mapping, AddressOf(ElfFixture("libwhole.so"), "_ZL12HiddenHelperi"))->text, "HiddenHelper");
  EXPECT_EQ(source_->counters().debug_files_used, 1u);
}

class CopiedFixture {
 public:
  CopiedFixture() {
    char name[] = "/tmp/clrsampler_elf_XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~CopiedFixture() { std::filesystem::remove_all(folder_); }
  std::string Copy(const std::string& from, const std::string& to) {
    std::filesystem::create_directories(std::filesystem::path(folder_ + "/" + to).parent_path());
    std::filesystem::copy_file(from, folder_ + "/" + to);
    return folder_ + "/" + to;
  }
  void Write(const std::string& to, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(folder_ + "/" + to).parent_path());
    UniqueFd fd(open((folder_ + "/" + to).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    ASSERT_TRUE(WriteAll(fd.get(), text).ok());
  }
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
};

TEST_F(ElfSymbolsSourceTest, WithoutSymbolsEveryFunctionIsOneFrameByItsStart) {
  CopiedFixture copy;
  const std::string lone = copy.Copy(ElfFixture("libstripped.so"), "libstripped.so");
  const Mapping mapping = MappingOf(lone);
  const uint64_t start = AddressOf(ElfFixture("libwhole.so"), "_ZL12HiddenHelperi");
  const std::string whole = *ReadWholeFile(ElfFixture("libwhole.so"), 64 << 20);
  const auto symbol = FindSymbol(*ElfImage::Parse(AsBytes(whole)), "_ZL12HiddenHelperi");
  const std::string expected = absl::StrCat("libstripped.so!0x", absl::Hex(symbol->address.value));
  const auto first = At(mapping, start), last = At(mapping, start + symbol->size - 1);
  EXPECT_EQ(first->text, expected);
  EXPECT_EQ(first->source, NameSource::kFunctionStart);
  EXPECT_EQ(last->text, expected);
  EXPECT_EQ(At(mapping, AddressOf(ElfFixture("libwhole.so"), "exported_entry"))->text, "exported_alias");
  // The padding in assembly that no table knows.
  const auto unknown = At(mapping, AddressOf(ElfFixture("libwhole.so"), "after_sizeless") + 20);
  EXPECT_EQ(unknown->text, "[native: no symbols libstripped.so]");
  EXPECT_FALSE(unknown->named());
}

TEST_F(ElfSymbolsSourceTest, ADebugFileOfAnotherBuildIsNotBelieved) {
  CopiedFixture copy;
  const std::string lone = copy.Copy(ElfFixture("libstripped.so"), "libstripped.so");
  std::string debug = *ReadWholeFile(ElfFixture("libstripped.so.dbg"), 64 << 20);
  const auto image = ElfImage::Parse(AsBytes(debug));
  debug[static_cast<size_t>(image->build_id().data() - AsBytes(debug).data())] ^= 1;
  copy.Write("libstripped.so.dbg", debug);
  EXPECT_THAT(At(MappingOf(lone), AddressOf(ElfFixture("libwhole.so"), "_ZL12HiddenHelperi"))->text,
              StartsWith("libstripped.so!0x"));
  EXPECT_EQ(source_->counters().debug_files_wrong, 1u);
}

TEST_F(ElfSymbolsSourceTest, FindsDebugFilesInTheSubfolderAndOnTheHostByBuildId) {
  const uint64_t hidden = AddressOf(ElfFixture("libwhole.so"), "_ZL12HiddenHelperi");
  CopiedFixture beside;
  const std::string library = beside.Copy(ElfFixture("libstripped.so"), "libstripped.so");
  beside.Copy(ElfFixture("libstripped.so.dbg"), ".debug/libstripped.so.dbg");
  EXPECT_EQ(At(MappingOf(library), hidden)->text, "HiddenHelper");

  CopiedFixture lone, host;
  const std::string other = lone.Copy(ElfFixture("libstripped.so"), "libother.so");
  const std::string bytes = *ReadWholeFile(other, 64 << 20);
  const std::string id = BuildIdText(ElfImage::Parse(AsBytes(bytes))->build_id());
  host.Copy(ElfFixture("libstripped.so.dbg"), ".build-id/" + id.substr(0, 2) + "/" + id.substr(2) + ".debug");
  EXPECT_EQ(At(MappingOf(other), hidden, NameStyle::kShort, host.folder())->text, "HiddenHelper");
}

// Without build-ids, by checksum. The image asks for a file with `crc`.
std::string LinkedTo(const std::string& name, uint32_t crc) {
  LinkedImage image(EM_X86_64);
  image.Add({.name = ".text", .flags = SHF_ALLOC | SHF_EXECINSTR, .address = 0x1000, .bytes = "\xc3"});
  std::string link = name + '\0';
  link.resize((link.size() + 3) / 4 * 4);
  return image.Add({.name = ".gnu_debuglink", .flags = 0, .bytes = link + RawBytes(crc)}).Build();
}

std::string WithSymbols(const std::string& name) {
  LinkedImage image(EM_X86_64);
  image.Add({.name = ".text", .flags = SHF_ALLOC | SHF_EXECINSTR, .address = 0x1000, .bytes = "\xc3"});
  return image.AddSymbols(".symtab", ".strtab", {{name, 0x1000, 1}}).Build();
}

uint32_t CrcOf(const std::string& bytes) {
  return static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
}

TEST_F(ElfSymbolsSourceTest, AChecksumIsComputedOnceForAFileUnderManyNames) {
  CopiedFixture folder;
  const std::string debug = WithSymbols("wanted");
  folder.Write("app", LinkedTo("link", CrcOf(debug) + 1));
  folder.Write("link", debug);
  std::filesystem::create_directory(folder.folder() + "/.debug");
  for (const char* name : {"app.dbg", "app.debug", ".debug/link", ".debug/app.dbg", ".debug/app.debug"}) {
    std::filesystem::create_hard_link(folder.folder() + "/link", folder.folder() + "/" + name);
  }
  DebugFileFinder finder(images_, "/nowhere");
  const auto find = [&](const std::string& name) {
    const auto file = images_.GetByPath(process_, folder.folder() + "/" + name);
    EXPECT_TRUE(file.ok()) << file.status();
    return finder.Find(process_, (*file)->path, *file, *ElfImage::Parse((*file)->bytes())).has_value();
  };
  EXPECT_FALSE(find("app"));
  EXPECT_EQ(finder.crc_bytes(), debug.size());
  EXPECT_GE(finder.mismatches(), 6u);
  folder.Write("good", LinkedTo("link", CrcOf(debug)));
  EXPECT_TRUE(find("good"));
  EXPECT_EQ(finder.crc_bytes(), debug.size());
}

// The image is one of many processes, and one of them may have no room for names.
TEST_F(ElfSymbolsSourceTest, ARefusalIsNotKept) {
  const std::string library = ElfFixture("libwhole.so");
  const Mapping mapping = MappingOf(library);
  const uint64_t hidden = AddressOf(library, "_ZL12HiddenHelperi");
  FrameRoom none;
  frames_.SetRoom(&none);
  EXPECT_EQ(At(mapping, hidden)->text, "[function of a program with too many names]");
  EXPECT_EQ(At(mapping, mapping.start)->text, "[function of a program with too many names]");
  frames_.SetRoom(nullptr);
  EXPECT_EQ(At(mapping, hidden)->text, "HiddenHelper");
  EXPECT_NE(At(mapping, mapping.start)->text, "[function of a program with too many names]");
  frames_.SetRoom(&none);
  EXPECT_EQ(At(mapping, hidden)->text, "HiddenHelper");
}

// An image and its debug file of so many bytes, both without a build id; the checksum is a wrong one.
void WriteUnchecked(CopiedFixture& folder, const std::string& name, uint64_t bytes) {
  folder.Write(name, LinkedTo(name + ".debug", 1));
  folder.Write(name + ".debug", WithSymbols(name));
  std::filesystem::resize_file(folder.folder() + "/" + name + ".debug", bytes);
}

TEST_F(ElfSymbolsSourceTest, ChecksumsForAProcessAreBounded) {
  CopiedFixture folder;
  for (const std::string name : {"a", "b"}) WriteUnchecked(folder, name, CrcBounds().of_process / 2 + 1);
  const auto at = [&](const std::string& name) {
    const Mapping mapping = MappingOf(folder.folder() + "/" + name);
    (void)At(mapping, mapping.start);
    return notices_.counts().contains("debug_file_unchecked");
  };
  EXPECT_FALSE(at("a"));
  EXPECT_TRUE(at("b"));
}

TEST_F(ElfSymbolsSourceTest, ChecksumsForAllAreBoundedAndTheBoundRefills) {
  CopiedFixture folder;
  const CrcBounds bounds{.of_process = 64 << 10, .first_file = 256 << 10, .of_all = 512 << 10, .a_second = 4 << 10};
  const uint64_t large = bounds.first_file, small = bounds.of_process / 2;
  for (const std::string name : {"a", "b"}) WriteUnchecked(folder, name, large);
  WriteUnchecked(folder, "c", small);
  WriteUnchecked(folder, "too_large", large + 1);
  FakeClock clock;
  clock.Set({kSecondNs});
  ImageFiles images(nullptr, &clock);
  DebugFileFinder finder(images, "/nowhere", bounds);
  // How many bytes were summed up.
  const auto sum = [&](uint32_t tgid, const std::string& name) {
    const Process process(ProcessKey{tgid, 1}, TargetFiles("/proc", static_cast<uint32_t>(getpid())));
    const auto file = images.GetByPath(process, folder.folder() + "/" + name);
    EXPECT_TRUE(file.ok()) << file.status();
    const uint64_t before = finder.crc_bytes();
    EXPECT_FALSE(finder.Find(process, (*file)->path, *file, *ElfImage::Parse((*file)->bytes())).has_value());
    return finder.crc_bytes() - before;
  };
  EXPECT_EQ(sum(1, "too_large"), 0u);
  EXPECT_GT(finder.unchecked(), 0u);
  EXPECT_EQ(sum(1, "a"), large);
  EXPECT_EQ(sum(2, "b"), large);
  EXPECT_EQ(sum(3, "c"), 0u) << "others took all";
  clock.Advance(small / bounds.a_second * kSecondNs - kSecondNs);
  EXPECT_EQ(sum(3, "c"), 0u);
  clock.Advance(kSecondNs);
  EXPECT_EQ(sum(3, "c"), small) << "it was not taken for known";
}

// As .NET's symbol packages and distributions ship them, for an image that says nothing about its debug file.
TEST_F(ElfSymbolsSourceTest, FindsDebugFilesByTheImagesOwnName) {
  const uint64_t hidden = AddressOf(ElfFixture("libwhole.so"), "_ZL12HiddenHelperi");
  for (const std::string name : {"libunlinked.so.dbg", "libunlinked.so.debug", ".debug/libunlinked.so.debug"}) {
    CopiedFixture copy;
    const std::string library = copy.Copy(ElfFixture("libunlinked.so"), "libunlinked.so");
    copy.Copy(ElfFixture("libstripped.so.dbg"), name);
    source_.reset();
    EXPECT_EQ(At(MappingOf(library), hidden)->text, "HiddenHelper") << name;
  }
  CopiedFixture lone, host;
  const std::string library = lone.Copy(ElfFixture("libunlinked.so"), "libunlinked.so");
  host.Copy(ElfFixture("libstripped.so.dbg"), library.substr(1) + ".debug");
  EXPECT_EQ(At(MappingOf(library), hidden, NameStyle::kShort, host.folder())->text, "HiddenHelper");

  CopiedFixture other;
  const std::string wrong = other.Copy(ElfFixture("libunlinked.so"), "libunlinked.so");
  other.Copy(ElfFixture("static"), "libunlinked.so.dbg");
  EXPECT_THAT(At(MappingOf(wrong), hidden)->text, StartsWith("libunlinked.so!0x"));
  EXPECT_EQ(source_->counters().debug_files_wrong, 1u);
}

// A server on which files appear when the test says so.
class FakeSymbolFiles : public SymbolFiles {
 public:
  Answer Get(const SymbolFileKey& key) override {
    asked_.push_back(key.id);
    return files_.contains(key.id) ? files_.at(key.id) : Answer{State::kWaiting, nullptr};
  }
  uint64_t generation() const override { return generation_; }

  void Arrives(const std::string& id, const std::string& path) {
    const auto fd = OpenForReading(path);
    auto file = std::make_shared<ImageFile>();
    file->content = *MappedFile::Map(fd->get(), 0, 0, 64 << 20);
    files_[id] = {State::kHere, std::move(file)};
    ++generation_;
  }
  const std::vector<std::string>& asked() const { return asked_; }

 private:
  std::map<std::string, Answer> files_;
  std::vector<std::string> asked_;
  uint64_t generation_ = 0;
};

TEST_F(ElfSymbolsSourceTest, ASymbolFileThatComesLaterNamesWhatFollowsAndWhatWas) {
  FakeSymbolFiles files;
  symbol_files_ = &files;
  CopiedFixture copy;
  const std::string lone = copy.Copy(ElfFixture("libstripped.so"), "libstripped.so");
  const Mapping mapping = MappingOf(lone);
  const uint64_t hidden = AddressOf(ElfFixture("libwhole.so"), "_ZL12HiddenHelperi");
  const auto before = At(mapping, hidden);
  EXPECT_THAT(before->text, StartsWith("libstripped.so!0x"));
  const uint64_t generation = source_->Generation(process_.key);
  EXPECT_EQ(At(mapping, hidden), before);
  EXPECT_THAT(files.asked(), testing::ElementsAre(BuildIdOf(lone))) << "not asked again before something came";

  files.Arrives(BuildIdOf(lone), ElfFixture("libstripped.so.dbg"));
  EXPECT_GT(source_->Generation(process_.key), generation);
  EXPECT_EQ(At(mapping, hidden)->text, "HiddenHelper");
  EXPECT_EQ(At(mapping, hidden)->source, NameSource::kElfSymbols);
  EXPECT_EQ(source_->counters().debug_files_fetched, 1u);
  EXPECT_EQ(files.asked().size(), 2u);

  absl::flat_hash_map<FrameId, FrameId> names;
  source_->AddLateNames(names);
  ASSERT_EQ(names.size(), 1u);
  EXPECT_EQ(frames_.at(names.begin()->first), *before);
  EXPECT_EQ(frames_.at(names.begin()->second).text, "HiddenHelper");
}

// The process may be gone by then, and no sample will ask for the image again.
TEST_F(ElfSymbolsSourceTest, ASymbolFileThatComesAfterTheLastSampleStillNamesIt) {
  FakeSymbolFiles files;
  symbol_files_ = &files;
  CopiedFixture copy;
  const std::string lone = copy.Copy(ElfFixture("libstripped.so"), "libstripped.so");
  At(MappingOf(lone), AddressOf(ElfFixture("libwhole.so"), "_ZL12HiddenHelperi"));
  process_.ends->Announce(process_.key);
  files.Arrives(BuildIdOf(lone), ElfFixture("libstripped.so.dbg"));
  absl::flat_hash_map<FrameId, FrameId> names;
  source_->AddLateNames(names);
  EXPECT_EQ(names.size(), 1u);
}

TEST_F(ElfSymbolsSourceTest, TwoBuildsWithTheSameTextGetTheirNamesApart) {
  FakeSymbolFiles files;
  symbol_files_ = &files;
  CopiedFixture copy;
  const Mapping first = MappingOf(copy.Copy(ElfFixture("libstripped.so"), "libstripped.so"));
  const uint64_t hidden = AddressOf(ElfFixture("libwhole.so"), "_ZL12HiddenHelperi");
  const auto before = At(first, hidden);
  std::string bytes = *ReadWholeFile(ElfFixture("libstripped.so"), 64 << 20);
  const auto image = ElfImage::Parse(AsBytes(bytes));
  bytes[static_cast<size_t>(image->build_id().data() - AsBytes(bytes).data())] ^= 1;
  // An update, at the same path: only the builds tell the two functions apart.
  std::filesystem::remove(first.path);
  copy.Write("libstripped.so", bytes);
  Mapping second = MappingOf(first.path);
  second.start += 0x10000000;
  second.end += 0x10000000;
  const auto after = At(second, hidden + 0x10000000);
  EXPECT_EQ(after->text, before->text);
  EXPECT_NE(after->image->build_id, before->image->build_id);
  files.Arrives(BuildIdOf(ElfFixture("libstripped.so")), ElfFixture("libstripped.so.dbg"));
  EXPECT_EQ(At(first, hidden)->text, "HiddenHelper");
  absl::flat_hash_map<FrameId, FrameId> names;
  source_->AddLateNames(names);
  ASSERT_EQ(names.size(), 1u);
  EXPECT_EQ(frames_.at(names.begin()->first), *before) << "the server has no file of the other build";
}

TEST_F(ElfSymbolsSourceTest, NobodyIsAskedForAnImageWithSymbolsOrADebugFile) {
  FakeSymbolFiles files;
  symbol_files_ = &files;
  At(MappingOf(ElfFixture("libwhole.so")), AddressOf(ElfFixture("libwhole.so"), "_ZL12HiddenHelperi"));
  At(MappingOf(ElfFixture("libstripped.so")), AddressOf(ElfFixture("libwhole.so"), "_ZL12HiddenHelperi"));
  EXPECT_THAT(files.asked(), testing::IsEmpty());
}

// By which file a debugger would read the line, and at which address.
TEST_F(ElfSymbolsSourceTest, LinesAreInTheImageOrInItsDebugFile) {
  FakeSymbolFiles files;
  ElfSymbolsSource source(images_, frames_, notices_, NameStyle::kShort, {"/nowhere", &files, true});
  const uint64_t address = AddressOf(ElfFixture("liblines.so"), "exported_entry");
  for (const auto& [image, lines] : {std::pair{"liblines.so", "liblines.so"}, {"libaway.so", "libaway.so.dbg"}}) {
    const auto place = source.LinePlaceOf(process_, MappingOf(ElfFixture(image)), address + 4);
    ASSERT_TRUE(place.has_value()) << image;
    EXPECT_EQ(place->file->path, ElfFixture(lines));
    EXPECT_FALSE(place->fetched);
    const std::string bytes = *ReadWholeFile(ElfFixture("liblines.so"), 64 << 20);
    EXPECT_EQ(place->address.value, FindSymbol(*ElfImage::Parse(AsBytes(bytes)), "exported_entry")->address.value + 4);
  }
  EXPECT_THAT(files.asked(), testing::IsEmpty());
  EXPECT_FALSE(source.LinePlaceOf(process_, MappingOf(ElfFixture("liblines.so")), kBase - 1).has_value());
  EXPECT_FALSE(source.LinePlaceOf(process_, MappingOf(ElfFixture("libwhole.so")), address).has_value());
  EXPECT_THAT(files.asked(), testing::ElementsAre(BuildIdOf(ElfFixture("libwhole.so"))))
      << "it has names, and no lines";
}

TEST_F(ElfSymbolsSourceTest, LinesMayComeFromAServer) {
  FakeSymbolFiles files;
  ElfSymbolsSource source(images_, frames_, notices_, NameStyle::kShort, {"/nowhere", &files, true});
  CopiedFixture copy;
  const Mapping mapping = MappingOf(copy.Copy(ElfFixture("libaway.so"), "libaway.so"));
  const uint64_t address = AddressOf(ElfFixture("liblines.so"), "exported_entry");
  EXPECT_FALSE(source.LinePlaceOf(process_, mapping, address).has_value());
  files.Arrives(BuildIdOf(mapping.path), ElfFixture("libaway.so.dbg"));
  const auto place = source.LinePlaceOf(process_, mapping, address);
  ASSERT_TRUE(place.has_value());
  EXPECT_TRUE(place->fetched);
  EXPECT_EQ(source.counters().debug_files_fetched, 0u) << "its names are its own";
}

TEST_F(ElfSymbolsSourceTest, WithoutAWishForLinesNobodyLooksForThem) {
  FakeSymbolFiles files;
  ElfSymbolsSource source(images_, frames_, notices_, NameStyle::kShort, {"/nowhere", &files});
  const uint64_t address = AddressOf(ElfFixture("liblines.so"), "exported_entry");
  EXPECT_FALSE(source.LinePlaceOf(process_, MappingOf(ElfFixture("liblines.so")), address).has_value());
  EXPECT_THAT(files.asked(), testing::IsEmpty());
}

TEST_F(ElfSymbolsSourceTest, AFifoInPlaceOfTheDebugFileDoesNotStopUs) {
  CopiedFixture copy;
  const std::string lone = copy.Copy(ElfFixture("libstripped.so"), "libstripped.so");
  ASSERT_EQ(mkfifo((lone + ".dbg").c_str(), 0644), 0);
  CopiedFixture host;
  std::filesystem::create_directories(host.folder() + copy.folder());
  ASSERT_EQ(mkfifo((host.folder() + lone + ".dbg").c_str(), 0644), 0);
  EXPECT_THAT(
      At(MappingOf(lone), AddressOf(ElfFixture("libwhole.so"), "_ZL12HiddenHelperi"), NameStyle::kShort, host.folder())
          ->text,
      StartsWith("libstripped.so!0x"));
}

TEST_F(ElfSymbolsSourceTest, DamagedAndUnreadableImagesCostOneAttemptAndOneNotice) {
  CopiedFixture copy;
  copy.Write("torn.so",
             "\x7f"
             "ELF then nothing");
  const Mapping torn = MappingOf(copy.folder() + "/torn.so");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(At(torn, kBase)->text, "[native: cannot read torn.so]");
  Mapping gone = torn;
  gone.path = copy.folder() + "/gone.so";
  gone.inode = 1;
  gone.start = kBase + 0x10000;
  gone.end = gone.start + 0x1000;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(At(gone, gone.start)->text, "[native: cannot read gone.so]");
  EXPECT_EQ(source_->counters().images_failed, 2u);
  EXPECT_EQ(notices_.counts().at("image_unreadable"), 2u);
}

TEST_F(ElfSymbolsSourceTest, OtherFilesAndPlacesAreLeftToOtherSources) {
  CopiedFixture copy;
  copy.Write("App.dll", "MZ and so on");
  EXPECT_FALSE(At(MappingOf(copy.folder() + "/App.dll"), kBase).has_value());
  Mapping jit = MappingOf(ElfFixture("libwhole.so"));
  EXPECT_FALSE(At(jit, jit.end - 1).has_value()) << "section headers are in no segment";
  jit.kind = MappingKind::kJitMemory;
  EXPECT_FALSE(At(jit, kBase + 0x1000).has_value());
}

TEST_F(ElfSymbolsSourceTest, PltStubsCarryTheNameOfTheirTarget) {
  const std::string file = ElfFixture("libwhole.so");
  const std::string bytes = *ReadWholeFile(file, 64 << 20);
  const auto image = ElfImage::Parse(AsBytes(bytes));
  const Mapping mapping = MappingOf(file);
  std::vector<std::string> texts;
  for (const ElfSection& section : image->sections()) {
    if (section.name.substr(0, 4) != ".plt") continue;
    for (uint64_t at = 0; at < section.size; at += 16) {
      texts.push_back(At(mapping, kBase + section.offset + at)->text);
    }
  }
  EXPECT_THAT(texts, testing::Contains("rand@plt"));
  EXPECT_THAT(texts, testing::Contains("puts@plt"));
}

TEST_F(ElfSymbolsSourceTest, TheVdsoIsReadFromOurselves) {
  const auto text = ReadWholeFile("/proc/self/maps", 64 << 20);
  for (const MapsLine& line : ParseMaps(*text).lines) {
    if (line.path != "[vdso]") continue;
    Mapping mapping;
    mapping.start = kBase;  // another process has it elsewhere
    mapping.end = kBase + (line.end - line.start);
    mapping.kind = MappingKind::kVdso;
    mapping.path = "[vdso]";
    void* library = dlopen("linux-vdso.so.1", RTLD_NOLOAD | RTLD_LAZY);
    ASSERT_NE(library, nullptr);
    void* function = dlsym(library, "__vdso_clock_gettime");
    if (function == nullptr) function = dlsym(library, "__kernel_clock_gettime");
    ASSERT_NE(function, nullptr);
    const uint64_t inside = reinterpret_cast<uint64_t>(function) - getauxval(AT_SYSINFO_EHDR);
    EXPECT_THAT(At(mapping, kBase + inside + 1)->text, testing::HasSubstr("clock_gettime"));
    EXPECT_EQ(At(mapping, kBase + inside + 1)->image->build_id.size(), 40u);
    mapping.end += 0x1000;  // a 32-bit process has another one
    EXPECT_FALSE(At(mapping, kBase + inside + 1)->named());
    EXPECT_EQ(At(mapping, kBase + inside + 1)->image->build_id, "");
    return;
  }
  GTEST_SKIP() << "no vDSO here";
}

TEST_F(ElfSymbolsSourceTest, LibcIsNamedByItsDebugPackage) {
  const std::string file = "/lib/x86_64-linux-gnu/libc.so.6";
  if (!std::filesystem::exists(file) || !std::filesystem::exists("/usr/lib/debug/.build-id")) {
    GTEST_SKIP() << "needs libc6-dbg on x86-64";
  }
  const Mapping mapping = MappingOf(file);
  EXPECT_EQ(At(mapping, AddressOf(file, "malloc") + 1, NameStyle::kFull, "/usr/lib/debug")->text, "libc.so.6!malloc");
  EXPECT_EQ(source_->counters().debug_files_used, 1u);
  // Unexported functions are there too. The debug file has no code, so its own offsets mean nothing.
  const std::string bytes = *ReadWholeFile(file, 64 << 20);
  const auto image = ElfImage::Parse(AsBytes(bytes));
  const std::string id = BuildIdText(image->build_id());
  const std::string debug =
      *ReadWholeFile("/usr/lib/debug/.build-id/" + id.substr(0, 2) + "/" + id.substr(2) + ".debug", 64 << 20);
  const auto symbol = FindSymbol(*ElfImage::Parse(AsBytes(debug)), "_int_malloc");
  ASSERT_TRUE(symbol.has_value());
  const uint64_t address = kBase + image->ToOffset(symbol->address)->value;
  EXPECT_EQ(At(mapping, address + 1, NameStyle::kShort, "/usr/lib/debug")->text, "_int_malloc");
}

TEST_F(ElfSymbolsSourceTest, ForgottenProcessesFreeAllButAFewImages) {
  CopiedFixture copy;
  constexpr size_t kIdle = 20, kImages = kIdle + 10;
  ElfSymbolsSource::Options few;
  few.idle_images = kIdle;
  source_ = std::make_unique<ElfSymbolsSource>(images_, frames_, notices_, NameStyle::kShort, few);
  for (size_t i = 0; i < kImages; ++i) {
    Mapping mapping = MappingOf(copy.Copy(ElfFixture("libwhole.so"), absl::StrCat("lib", i, ".so")));
    mapping.start += i << 24;
    mapping.end += i << 24;
    ASSERT_TRUE(source_->Resolve({process_, &mapping, mapping.start + 0x1100, mapping.start + 0x1100, MonotonicTime{1}})
                    .has_value());
  }
  const uint64_t each = source_->counters().index_bytes / kImages;
  process_.ends->Announce(process_.key);
  EXPECT_EQ(source_->counters().images_held, kIdle);
  EXPECT_EQ(source_->counters().index_bytes, each * kIdle);
}

TEST_F(ElfSymbolsSourceTest, WhatNoProcessUsesIsBoundedByItsBytes) {
  CopiedFixture copy;
  constexpr size_t kImages = 30;
  ElfSymbolsSource::Options small;
  small.idle_bytes = 16'000;
  source_ = std::make_unique<ElfSymbolsSource>(images_, frames_, notices_, NameStyle::kShort, small);
  for (size_t i = 0; i < kImages; ++i) {
    Mapping mapping = MappingOf(copy.Copy(ElfFixture("libwhole.so"), absl::StrCat("lib", i, ".so")));
    mapping.start += i << 24;
    mapping.end += i << 24;
    ASSERT_TRUE(source_->Resolve({process_, &mapping, mapping.start + 0x1100, mapping.start + 0x1100, MonotonicTime{1}})
                    .has_value());
  }
  EXPECT_EQ(source_->counters().images_held, kImages) << "what is in use stays";
  process_.ends->Announce(process_.key);
  EXPECT_LT(source_->counters().images_held, kImages);
  EXPECT_GT(source_->counters().images_held, 0u);
  EXPECT_LT(source_->counters().index_bytes, small.idle_bytes);
}

// A stripped runtime that says which of its functions managed code may call: Function(i) is "Thread_Do<i>".
class RuntimeSymbolsTest : public ElfSymbolsSourceTest {
 protected:
  RuntimeSymbolsTest() {
    std::vector<std::string> names;
    for (int i = 0; i < 40; ++i) names.push_back(absl::StrCat("Thread_Do", i));
    builder_.AddPairs(names);
    builder_.build_id = std::string(20, 'r');
  }
  // Where function `index` and so many bytes more are in the mapping of what the builder makes.
  uint64_t AddressIn(const std::string& path, size_t index, uint64_t more = 0) {
    const std::string bytes = *ReadWholeFile(path, 64 << 20);
    const auto image = ElfImage::Parse(AsBytes(bytes));
    return kBase + image->ToOffset({RuntimeImageBuilder::Function(index) + more})->value;
  }
  std::string Written(const std::string& name) {
    copy_.Write(name, builder_.Build());
    return copy_.folder() + "/" + name;
  }

  CopiedFixture copy_;
  RuntimeImageBuilder builder_;
};

TEST_F(RuntimeSymbolsTest, AFunctionIsNamedByTheRuntimesOwnTable) {
  const std::string path = Written("libcoreclr.so");
  const Mapping mapping = MappingOf(path);
  const auto frame = At(mapping, AddressIn(path, 3, 15));
  EXPECT_EQ(frame->text, "Thread_Do3");
  EXPECT_EQ(frame->source, NameSource::kRuntimeTable);
  EXPECT_EQ(frame->kind, FrameKind::kNative);
  EXPECT_EQ(frame->module, "libcoreclr.so");
  EXPECT_EQ(frame->address, RuntimeImageBuilder::Function(3));
  EXPECT_EQ(frame->size, RuntimeImageBuilder::kFunctionBytes);
  EXPECT_EQ(source_->counters().runtimes_read, 1u);
  // The unwind table says where it ends, and the next one has no name.
  const auto next = At(mapping, AddressIn(path, 40));
  EXPECT_EQ(next->text, absl::StrCat("libcoreclr.so!0x", absl::Hex(RuntimeImageBuilder::Function(40))));
  EXPECT_EQ(next->source, NameSource::kFunctionStart);
  EXPECT_EQ(At(mapping, AddressIn(path, 3), NameStyle::kFull)->text, "libcoreclr.so!Thread_Do3");
  EXPECT_EQ(At(mapping, AddressIn(path, 3), NameStyle::kRaw)->text, "Thread_Do3");
}

TEST_F(RuntimeSymbolsTest, ASymbolOfTheImageWins) {
  builder_.symbols = {{"_ZN12ThreadNative2DoEv", RuntimeImageBuilder::Function(3), 16, STT_FUNC}};
  const std::string path = Written("libcoreclr.so");
  EXPECT_EQ(At(MappingOf(path), AddressIn(path, 3))->text, "ThreadNative::Do");
  EXPECT_EQ(At(MappingOf(path), AddressIn(path, 3))->source, NameSource::kElfSymbols);
  EXPECT_EQ(At(MappingOf(path), AddressIn(path, 4))->text, "Thread_Do4") << "the symbols leave it out";
}

TEST_F(RuntimeSymbolsTest, ASymbolThatComesLaterWins) {
  FakeSymbolFiles files;
  symbol_files_ = &files;
  const std::string path = Written("libcoreclr.so");
  const auto before = At(MappingOf(path), AddressIn(path, 3));
  EXPECT_EQ(before->text, "Thread_Do3");
  builder_.symbols = {{"_ZN12ThreadNative2DoEv", RuntimeImageBuilder::Function(3), 16, STT_FUNC}};
  files.Arrives(BuildIdOf(path), Written("libcoreclr.so.dbg.elsewhere"));
  EXPECT_EQ(At(MappingOf(path), AddressIn(path, 3))->text, "ThreadNative::Do");
  absl::flat_hash_map<FrameId, FrameId> names;
  source_->AddLateNames(names);
  ASSERT_EQ(names.size(), 1u);
  EXPECT_EQ(frames_.at(names.begin()->first), *before);
  EXPECT_EQ(frames_.at(names.begin()->second).text, "ThreadNative::Do");
}

TEST_F(RuntimeSymbolsTest, OtherImagesKeepTheirAddresses) {
  builder_.runtime_export = "PyInit_lists";
  const std::string path = Written("liblists.so");
  EXPECT_THAT(At(MappingOf(path), AddressIn(path, 3))->text, StartsWith("liblists.so!0x"));
  EXPECT_EQ(source_->counters().runtimes_read, 0u);
}

TEST_F(ElfSymbolsSourceTest, AFileSystemThatDoesNotAnswerIsAskedAgainAfterASecond) {
  const std::string file = ElfFixture("libwhole.so");
  const Mapping mapping = MappingOf(file);
  const uint64_t address = AddressOf(file, "_ZNK4shop5Order5TotalEi") + 1;
  HangingTape tape;
  const Process slow(ProcessKey{1, 1}, TargetFiles("/proc", static_cast<uint32_t>(getpid()), &tape));
  FakeClock clock;
  ImageFiles images(nullptr, &clock);
  ElfSymbolsSource source(images, frames_, notices_, NameStyle::kShort);
  const auto at = [&](uint64_t time_ns) {
    clock.Set({time_ns});
    return *source.Resolve({slow, &mapping, address, address, {time_ns}});
  };
  EXPECT_EQ(frames_.at(at(kSecondNs).frame).text, "[native: cannot read libwhole.so]");
  EXPECT_GT(at(2 * kSecondNs - 1).until.ns, 2 * kSecondNs - 1);
  EXPECT_LT(at(2 * kSecondNs - 1).until.ns, 2 * kSecondNs + ImageFiles::kAskAgainNs / 4);
  EXPECT_EQ(tape.opens, 1);
  EXPECT_GT(at(2 * kSecondNs + ImageFiles::kAskAgainNs / 4).until.ns, 2 * kSecondNs);
  EXPECT_EQ(tape.opens, 2);
  EXPECT_EQ(source.counters().images_failed, 1u) << "it is said once";
  tape.hangs = false;
  EXPECT_EQ(frames_.at(at(4 * kSecondNs).frame).text, "shop::Order::Total");
  EXPECT_EQ(at(4 * kSecondNs).until, MonotonicTime::Max());
}

}  // namespace
}  // namespace clrsampler
