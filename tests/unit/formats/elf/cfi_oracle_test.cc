// Every row of real libraries as binutils' readelf interprets it. More images by hand: CFI_ORACLE_IMAGES=path:path.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "formats/elf/cfi_table.h"
#include "os/file_io.h"
#include "os/mapped_file.h"

namespace clrsampler {
namespace {

// One printed row: register name -> what is said of it ("c-16", "u", "exp"), "CFA" among them.
struct OracleRow {
  uint64_t start = 0, end = 0;
  bool signal_frame = false;
  std::map<std::string, std::string> columns;
};

uint64_t Hex(absl::string_view text) {
  uint64_t value = 0;
  EXPECT_TRUE(absl::SimpleHexAtoi(text, &value)) << text;
  return value;
}

// CIEs are printed with their augmentation and their one row. Functions are printed with the offset of their CIE, and
// with their rows below a line of column names. Functions that add nothing to their CIE have no rows.
class ReadelfParser {
 public:
  void AddLine(absl::string_view line) {
    std::vector<std::string> words = absl::StrSplit(line, absl::ByAnyChar(" \n"), absl::SkipEmpty());
    std::erase_if(words, [](const std::string& word) { return word.front() == '('; });  // "r9 (r9)"
    if (words.size() > 4 && words[3] == "CIE") {
      Finish();
      common_ = &commons_[words[0]];
      common_->signal_frame = absl::StrContains(words[4], "S");
    } else if (words.size() > 5 && words[3] == "FDE") {
      Finish();
      common_ = &commons_[words[4].substr(4)];
      in_function_ = true;
      const std::vector<std::string> bounds = absl::StrSplit(words[5].substr(3), "..");
      start_ = Hex(bounds[0]);
      end_ = Hex(bounds[1]);
    } else if (!words.empty() && words[0] == "LOC") {
      names_ = words;
    } else if (!words.empty() && words.size() == names_.size() && words[0].size() == 16) {
      OracleRow row;
      row.start = Hex(words[0]);
      row.end = end_;
      row.signal_frame = common_->signal_frame;
      for (size_t i = 1; i < words.size(); ++i) row.columns[names_[i]] = words[i];
      if (in_function_) {
        if (!function_.empty()) function_.back().end = row.start;
        function_.push_back(std::move(row));
      } else {
        *common_ = std::move(row);
      }
    }
  }

  const std::vector<OracleRow>& Finish() {
    if (in_function_ && function_.empty()) {
      OracleRow row = *common_;
      row.start = start_;
      row.end = end_;
      function_.push_back(std::move(row));
    }
    rows_.insert(rows_.end(), function_.begin(), function_.end());
    function_.clear();
    in_function_ = false;
    return rows_;
  }

 private:
  std::vector<OracleRow> rows_, function_;
  std::vector<std::string> names_;
  std::map<std::string, OracleRow> commons_;
  OracleRow* common_ = nullptr;
  bool in_function_ = false;
  uint64_t start_ = 0, end_ = 0;
};

std::vector<OracleRow> AskReadelf(const std::string& path) {
  ReadelfParser parser;
  const std::string command =
      absl::StrCat(READELF, " -W --debug-dump=no-follow-links --debug-dump=frames-interp '", path, "' 2>/dev/null");
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {};
  char line[4096];
  while (std::fgets(line, sizeof line, pipe) != nullptr) parser.AddLine(line);
  pclose(pipe);
  return parser.Finish();
}

std::string Signed(absl::string_view before, int64_t offset) {
  return absl::StrCat(before, offset < 0 ? "" : "+", offset);
}

bool RegisterAgrees(RegisterRule rule, int32_t offset, const std::string* column) {
  switch (rule) {
    case RegisterRule::kSame:  // readelf has "u" for what is not stated, too
      return column == nullptr || *column == "u" || *column == "s";
    case RegisterRule::kInRegister:
      return column != nullptr && column->starts_with(absl::StrCat("r", offset));
    case RegisterRule::kUndefined:
      return column != nullptr && *column == "u";
    case RegisterRule::kAtCfaOffset:
      return column != nullptr && *column == Signed("c", offset);
    case RegisterRule::kAtFpOffset:
      return column != nullptr && *column == "exp";
    case RegisterRule::kUnsupported:
      return column != nullptr &&
             (*column == "exp" || *column == "vexp" || column->starts_with("v") || column->starts_with("r"));
  }
  return false;
}

bool CfaAgrees(const CfiRow& row, const std::string& column, bool arm64) {
  switch (row.cfa) {
    case CfaRule::kSpOffset:
      return column == Signed(arm64 ? "sp" : "rsp", row.cfa_offset);
    case CfaRule::kFpOffset:
      return column == Signed(arm64 ? "x29" : "rbp", row.cfa_offset);
    case CfaRule::kRegister: {
      static constexpr const char* kNames[] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
                                               "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
      return column == Signed(kNames[row.cfa_register], row.cfa_offset);
    }
    case CfaRule::kFpDeref:
    case CfaRule::kSpDeref:
    case CfaRule::kSpIndexed:
    case CfaRule::kPlt:
      return column == "exp";
    case CfaRule::kUnsupported:
      if (column.starts_with("rsp-")) return true;  // no stack is like that
      return !column.starts_with("rsp") && !column.starts_with("rbp") && !column.starts_with("sp") &&
             !column.starts_with("x29");
  }
  return false;
}

bool Agrees(const CfiAnswer& answer, const OracleRow& expected, bool arm64) {
  if (answer.coverage != CfiCoverage::kRow || answer.row.signal_frame != expected.signal_frame) return false;
  const auto column = [&](const char* name) {
    const auto found = expected.columns.find(name);
    return found == expected.columns.end() ? nullptr : &found->second;
  };
  const std::string* cfa = column("CFA");
  return cfa != nullptr && CfaAgrees(answer.row, *cfa, arm64) &&
         RegisterAgrees(answer.row.fp, answer.row.fp_offset, column(arm64 ? "x29" : "rbp")) &&
         RegisterAgrees(answer.row.ra, answer.row.ra_offset, column("ra"));
}

// How many rows were compared; every one of them in both ways of looking it up, at its first, middle and last address.
size_t Compare(const std::string& path) {
  auto fd = OpenForReading(path);
  EXPECT_TRUE(fd.ok()) << fd.status();
  if (!fd.ok()) return 0;
  const auto file = MappedFile::Map(fd->get(), 0, 0, uint64_t{1} << 32);
  const auto image = ElfImage::Parse(file->bytes());
  EXPECT_TRUE(image.ok()) << path << ": " << image.status();
  if (!image.ok()) return 0;
  const auto table = CfiTable::Open(*image), compiled = CfiTable::OpenCompiled(*image);
  EXPECT_TRUE(table.ok() && compiled.ok()) << path;
  if (!table.ok() || !compiled.ok()) return 0;
  const bool arm64 = image->machine() == ElfMachine::kArm64;
  size_t compared = 0, differing = 0, unsupported = 0;
  for (const OracleRow& row : AskReadelf(path)) {
    if (row.start >= row.end) continue;
    ++compared;
    bool agrees = true;
    for (const uint64_t at : {row.start, row.start + (row.end - row.start) / 2, row.end - 1}) {
      for (const auto* way : {&*table, &*compiled}) agrees = agrees && Agrees(way->At({at}), row, arm64);
    }
    const CfiAnswer answer = table->At({row.start});
    if (!answer.row.signal_frame &&
        (answer.row.cfa == CfaRule::kUnsupported || answer.row.ra == RegisterRule::kUnsupported ||
         answer.row.fp == RegisterRule::kUnsupported)) {
      ++unsupported;
    }
    if (!agrees && ++differing <= 5) {
      ADD_FAILURE() << path << " at 0x" << std::hex << row.start << ": " << row.columns.at("CFA");
    }
  }
  EXPECT_EQ(differing, 0u) << path;
  EXPECT_EQ(compiled->compiled()->damaged(), 0u) << path;
  std::printf(
      "%s: %zu rows compared, %zu differ, %zu have a rule that is not supported; compiled %zu rows, %zu "
      "distinct, %zu bytes\n",
      path.c_str(), compared, differing, unsupported, compiled->compiled()->size(),
      compiled->compiled()->distinct_rows(), compiled->compiled()->memory_bytes());
  return compared;
}

// The file that a library of this very process was loaded from.
std::string LoadedLibrary(const std::string& name) {
  const auto maps = ReadWholeFile("/proc/self/maps", 16 << 20);
  for (const absl::string_view line : absl::StrSplit(*maps, '\n')) {
    const size_t slash = line.find('/');
    if (slash == absl::string_view::npos) continue;
    const absl::string_view path = line.substr(slash);
    if (absl::StrContains(path.substr(path.rfind('/')), name)) return std::string(path);
  }
  return "";
}

TEST(CfiOracleTest, EveryRowOfTheCLibraryIsThatOfReadelf) {
  const std::string path = LoadedLibrary("/libc.so");
  ASSERT_FALSE(path.empty());
  EXPECT_GT(Compare(path), 5000u);
}

TEST(CfiOracleTest, EveryRowOfTheCxxLibraryIsThatOfReadelf) {
  const std::string path = LoadedLibrary("/libstdc++.so");
  ASSERT_FALSE(path.empty());
  EXPECT_GT(Compare(path), 5000u);
}

TEST(CfiOracleTest, EveryRowOfThisProgramIsThatOfReadelf) {
  EXPECT_GT(Compare(std::filesystem::read_symlink("/proc/self/exe")), 1000u);
}

// CFI_ORACLE_IMAGES=PATH:PATH names others.
TEST(CfiOracleTest, EveryRowOfOtherImages) {
  const char* named = std::getenv("CFI_ORACLE_IMAGES");
  const std::string images = named != nullptr ? named : LoadedLibrary("/libm.so");
  ASSERT_FALSE(images.empty());
  for (const absl::string_view path : absl::StrSplit(images, ':', absl::SkipEmpty())) {
    EXPECT_GT(Compare(std::string(path)), 100u) << path;
  }
}

}  // namespace
}  // namespace clrsampler
