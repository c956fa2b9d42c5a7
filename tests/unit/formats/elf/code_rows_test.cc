#include "formats/elf/code_rows.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <ctime>
#include <filesystem>
#include <map>

#include "formats/byte_reader.h"
#include "formats/elf/cfi_table.h"
#include "formats/elf/control_flow_graph.h"
#include "formats/x64/instruction.h"
#include "os/file_io.h"
#include "unit/formats/elf/linked_image.h"

namespace clrsampler {
namespace {

constexpr uint64_t kText = 0x1000, kData = 0x8000, kRelocations = 0xa000;

// A stripped library: functions, of which some are exported.
class Library {
 public:
  // Each begins at the next multiple of 16.
  uint64_t Add(const std::string& digits, const std::string& exported = "") {
    while (code_.size() % 16 != 0) code_.push_back('\x90');
    const uint64_t start = kText + code_.size();
    std::string pair;
    for (const char c : digits) {
      if (c == ' ') continue;
      pair.push_back(c);
      if (pair.size() < 2) continue;
      code_.push_back(static_cast<char>(std::stoi(pair, nullptr, 16)));
      pair.clear();
    }
    if (!exported.empty()) symbols_.push_back({exported, start, 0});
    return start;
  }
  void Point(uint64_t target) { relocations_.emplace_back(kData + 8 * relocations_.size(), target); }

  absl::StatusOr<CodeRows> Rows() {
    LinkedImage image(EM_X86_64);
    image.Add({.name = ".text", .flags = SHF_ALLOC | SHF_EXECINSTR, .address = kText, .bytes = code_});
    image.Add({.name = ".data", .flags = SHF_ALLOC | SHF_WRITE, .address = kData, .bytes = std::string(0x100, '\0')});
    image.AddRelocations(kRelocations, relocations_);
    image.AddSymbols(".dynsym", ".dynstr", symbols_);
    bytes_ = image.Build();
    const auto parsed = ElfImage::Parse(AsBytes(bytes_));
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    return RowsOfCode(*parsed);
  }
  // The row at an address; nullopt: none.
  std::optional<CfiRow> At(uint64_t address) {
    const auto rows = Rows();
    EXPECT_TRUE(rows.ok()) << rows.status();
    if (!rows.ok()) return std::nullopt;
    for (const CodeRow& row : rows->rows) {
      if (address >= row.start.value && address < row.end.value) return row.row;
    }
    return std::nullopt;
  }

 private:
  std::string code_, bytes_;
  std::vector<LinkedImage::Symbol> symbols_;
  std::vector<std::pair<uint64_t, uint64_t>> relocations_;
};

void ExpectSp(const std::optional<CfiRow>& row, int32_t offset, std::optional<int32_t> fp = std::nullopt) {
  ASSERT_TRUE(row.has_value());
  EXPECT_EQ(row->cfa, CfaRule::kSpOffset);
  EXPECT_EQ(row->cfa_offset, offset);
  EXPECT_EQ(row->ra, RegisterRule::kAtCfaOffset);
  EXPECT_EQ(row->ra_offset, -8);
  EXPECT_EQ(row->fp, fp ? RegisterRule::kAtCfaOffset : RegisterRule::kSame);
  EXPECT_EQ(row->fp_offset, fp.value_or(0));
}

TEST(CodeRowsTest, AFunctionIsFollowedFromItsFirstInstruction) {
  Library library;
  // push rbp; push rbx; sub rsp, 24; je +6; add rsp, 24; pop rbx; pop rbp; ret; (from the jump) the same again
  const uint64_t f = library.Add("55 53 4883ec18 7407 4883c418 5b 5d c3 4883c418 5b 5d c3", "f");
  ExpectSp(library.At(f), 8);
  ExpectSp(library.At(f + 1), 16, -16);
  ExpectSp(library.At(f + 2), 24, -16);
  ExpectSp(library.At(f + 6), 48, -16);
  ExpectSp(library.At(f + 12), 24, -16);
  ExpectSp(library.At(f + 13), 16, -16);
  ExpectSp(library.At(f + 14), 8);
  ExpectSp(library.At(f + 15), 48, -16);
  EXPECT_FALSE(library.At(f + 22).has_value());
}

TEST(CodeRowsTest, AFramePointerTellsWhatTheStackPointerDoesNot) {
  Library library;
  // push rbp; mov rbp, rsp; push rbx; sub rsp, rdi; lea rsp, [rbp-8]; pop rbx; pop rbp; ret
  const uint64_t f = library.Add("55 4889e5 53 4829fc 488d65f8 5b 5d c3", "f");
  const auto row = library.At(f + 8);
  ASSERT_TRUE(row.has_value());
  EXPECT_EQ(row->cfa, CfaRule::kFpOffset);
  EXPECT_EQ(row->cfa_offset, 16);
  EXPECT_EQ(row->fp_offset, -16);
  ExpectSp(library.At(f + 12), 24, -16);
  // push rbp; mov rbp, rsp; sub rsp, rdi; leave; ret
  Library leaves;
  const uint64_t g = leaves.Add("55 4889e5 4829fc c9 c3", "g");
  EXPECT_EQ(leaves.At(g + 7)->cfa, CfaRule::kFpOffset);
  ExpectSp(leaves.At(g + 8), 8);
}

TEST(CodeRowsTest, WhatLeavesTheStackAnotherWayHasNoRows) {
  for (const char* code : {
           "50 c3",             // push rax; ret
           "58 c3",             // pop rax; ret
           "31 c0 ffcd c3",     // dec ebp; ret: the caller's rbp is lost
           "55 4889c4 5d c3",   // mov rsp, rax
           "7401 50 90 c3",     // two ways to one instruction, by a push and without
           "50 e900000000 06",  // into what is no instruction
           "c20800",            // takes arguments off
       }) {
    Library library;
    const uint64_t f = library.Add(code, "f");
    for (uint64_t at = f; at < f + 6; ++at) EXPECT_FALSE(library.At(at).has_value()) << code << ", " << at - f;
  }
}

TEST(CodeRowsTest, JumpsToOtherFunctionsAreReturns) {
  Library library;
  const uint64_t g = library.Add("c3", "g");
  const uint64_t good = library.Add("50 58 e9e9ffffff", "good");  // push, pop, jmp g
  const uint64_t bad = library.Add("50 90 e9d9ffffff", "bad");
  ExpectSp(library.At(g), 8);
  ExpectSp(library.At(good + 1), 16);
  EXPECT_FALSE(library.At(bad).has_value());
}

// Each runs into the next one, and only the last returns: that is known of all of them in a time that follows from
// their number, not from its square.
TEST(CodeRowsTest, AChainOfFunctionsIsFollowedInLinearTime) {
  constexpr size_t kFunctions = 100'000;
  constexpr uint64_t kChain = 0x100000;
  LinkedImage image(EM_X86_64);
  image.Add({.name = ".text",
             .flags = SHF_ALLOC | SHF_EXECINSTR,
             .address = kChain,
             .bytes = std::string(kFunctions - 1, '\x90') + '\xc3'});
  std::vector<LinkedImage::Symbol> symbols;
  for (size_t i = 0; i < kFunctions; ++i) symbols.push_back({"f", kChain + i, 0});
  image.AddSymbols(".dynsym", ".dynstr", symbols);
  const std::string bytes = image.Build();
  const auto parsed = ElfImage::Parse(AsBytes(bytes));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const std::clock_t begin = std::clock();
  const absl::StatusOr<CodeRows> rows = RowsOfCode(*parsed);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->functions, kFunctions);
  EXPECT_EQ(rows->row_bytes, kFunctions);
  EXPECT_LT(std::clock() - begin, 20 * CLOCKS_PER_SEC);
}

// Code that they share, from the last one to the first.
TEST(CodeRowsTest, FunctionsThatShareCodeAreJoinedInLinearTime) {
  ControlFlowGraph graph;
  constexpr uint32_t kFunctions = 200'000;
  graph.functions.resize(kFunctions);
  for (uint32_t i = kFunctions - 1; i > 0; --i) graph.functions[i].shares = i - 1;
  const std::clock_t begin = std::clock();
  for (uint32_t i = kFunctions; i-- > 0;) ASSERT_EQ(graph.ShortenShared(i), 0u);
  for (uint32_t i = 1; i < kFunctions; ++i) ASSERT_EQ(graph.functions[i].shares, 0u);
  EXPECT_LT(std::clock() - begin, 20 * CLOCKS_PER_SEC);
}

TEST(CodeRowsTest, WhatIsCalledIsAFunction) {
  Library library;
  const uint64_t f = library.Add("50 e80a000000 58 c3", "f");  // push; call the next one; pop; ret
  const uint64_t hidden = library.Add("53 5b c3");
  ExpectSp(library.At(hidden + 1), 16);
  ExpectSp(library.At(f + 6), 16);
}

TEST(CodeRowsTest, BehindACallThatDoesNotReturnIsAnotherFunction) {
  Library library;
  // push rax; call dies; then, without a gap, what begins on the callee's account: push rbx; push rbx; pop; pop; ret
  const uint64_t f = library.Add("50 e81a000000 53 53 5b 5b c3", "f");
  const uint64_t dies = library.Add("ebfe");
  library.Add("");
  const uint64_t same = library.Add("ebfe");
  ASSERT_EQ(same, f + 0x20);
  (void)dies;
  ExpectSp(library.At(f + 1), 16);
  EXPECT_FALSE(library.At(f + 6).has_value());
  EXPECT_FALSE(library.At(f + 7).has_value());
}

TEST(CodeRowsTest, ACallOfAnotherImageProvesNothing) {
  Library library;
  // push rax; call [rip+0]; add rsp, 8; ret: what follows leads out, and what is before begins the function.
  const uint64_t f = library.Add("50 ff1500000000 4883c408 c3", "f");
  ExpectSp(library.At(f + 1), 16);
  ExpectSp(library.At(f + 7), 16);
  // The same, and nothing behind the call leads out: it may be of another function.
  Library endless;
  const uint64_t g = endless.Add("50 ff1500000000 90 ff1500000000 ebfe", "g");
  ExpectSp(endless.At(g + 1), 16);
  EXPECT_FALSE(endless.At(g + 7).has_value());
}

TEST(CodeRowsTest, ThreadsBeginWithoutACaller) {
  Library library;
  // As musl's __clone: syscall; test eax, eax; jne 1f; xor ebp, ebp; pop rdi; call r9; mov edi, eax; syscall; hlt; 1:
  // ret
  const uint64_t f = library.Add("0f05 85c0 750b 31ed 5f 41ffd1 89c7 0f05 f4 c3", "f");
  ExpectSp(library.At(f), 8);
  for (const uint64_t inside : {6, 8, 9, 11, 12, 14, 16}) {
    const auto row = library.At(f + inside);
    ASSERT_TRUE(row.has_value()) << inside;
    EXPECT_EQ(row->ra, RegisterRule::kUndefined) << inside;
  }
  ExpectSp(library.At(f + 17), 8);
}

TEST(CodeRowsTest, AReturnAddressInARegisterHasNoRow) {
  Library library;
  const uint64_t f = library.Add("5a 0f05 52 c3", "vfork");  // pop rdx; syscall; push rdx; ret
  ExpectSp(library.At(f), 8);
  EXPECT_FALSE(library.At(f + 1).has_value());
  ExpectSp(library.At(f + 4), 8);
}

TEST(CodeRowsTest, PointersLeadToFunctionsOnlyBehindOthers) {
  Library library;
  library.Add("c3", "f");
  const uint64_t pointed = library.Add("53 ebfe");
  library.Point(pointed);
  ExpectSp(library.At(pointed + 1), 16);
  Library inside;
  const uint64_t g = inside.Add("31c0 90 90 c3", "g");
  inside.Point(g + 2);
  ExpectSp(inside.At(g + 3), 8);
  EXPECT_EQ(inside.Rows()->functions, 1u);
}

TEST(CodeRowsTest, OtherImagesAreRefusedWithASentence) {
  for (const uint16_t machine : {EM_X86_64, EM_AARCH64}) {
    LinkedImage image(machine);
    image.Add({.name = ".data", .flags = SHF_ALLOC | SHF_WRITE, .address = kData, .bytes = "x"});
    const std::string bytes = image.Build();
    const auto rows = RowsOfCode(*ElfImage::Parse(AsBytes(bytes)));
    ASSERT_FALSE(rows.ok());
    EXPECT_FALSE(rows.status().message().empty());
  }
}

// --- Libraries that have unwind data say what is true. ---

// glibc's assembly of GMP pushes registers and says nothing of it. A row that does not tell a push is no truth.
bool IsBlind(const CfiTable& table, const ElfImage& image, const CfiAnswer& function) {
  uint64_t at = function.start.value;
  for (int i = 0; i < 4096 && at < function.end.value; ++i) {
    const auto code = image.BytesFrom({at});
    const auto instruction = code ? DecodeX64(*code) : std::nullopt;
    if (!instruction) return true;
    const auto before = table.Row({at}), after = table.Row({at + instruction->bytes});
    const bool pushes = instruction->fp == X64Instruction::Fp::kPushed ||
                        (instruction->stack == X64Instruction::Stack::kAdd && instruction->value == -8);
    if (pushes && before && after && before->cfa == CfaRule::kSpOffset && *before == *after) return true;
    at += instruction->bytes;
  }
  return false;
}

struct Comparison {
  uint64_t code_bytes = 0, row_bytes = 0, compared = 0, without_truth = 0;
  std::vector<uint64_t> wrong;
};

Comparison CompareRows(const std::string& path) {
  Comparison result;
  const auto bytes = ReadWholeFile(path, 64 << 20);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  if (!bytes.ok()) return result;
  const auto image = ElfImage::Parse(AsBytes(*bytes));
  const auto rows = RowsOfCode(*image);
  const auto table = CfiTable::Open(*image);
  EXPECT_TRUE(rows.ok() && table.ok()) << path << ": " << rows.status() << table.status();
  if (!rows.ok() || !table.ok()) return result;
  result.code_bytes = rows->code_bytes;
  result.row_bytes = rows->row_bytes;
  std::map<uint64_t, bool> blind;  // by function
  for (const CodeRow& row : rows->rows) {
    for (uint64_t at = row.start.value; at < row.end.value;) {
      const auto code = image->BytesFrom({at});
      const auto instruction = code ? DecodeX64(*code) : std::nullopt;
      if (!instruction) {
        result.wrong.push_back(at);
        break;
      }
      const CfiAnswer answer = table->At({at});
      const auto [known, fresh] = blind.try_emplace(answer.start.value, false);
      if (fresh && answer.coverage == CfiCoverage::kRow) known->second = IsBlind(*table, *image, answer);
      if (answer.coverage != CfiCoverage::kRow || known->second) {
        result.without_truth += instruction->bytes;
      } else {
        const CfiRow &made = row.row, &is = answer.row;
        bool same = (made.ra == RegisterRule::kUndefined) == (is.ra == RegisterRule::kUndefined);
        if (same && made.ra != RegisterRule::kUndefined) {
          // Either may go by rbp where the other goes by rsp: then the two offsets can't be compared.
          if (made.cfa == is.cfa) same = made.cfa_offset == is.cfa_offset;
          const bool saved = made.fp == RegisterRule::kAtCfaOffset;
          if (saved && is.fp == RegisterRule::kAtCfaOffset) same = same && made.fp_offset == is.fp_offset;
          // gcc does not say that a pop has given rbp back, whose place is free then.
          if (made.fp == RegisterRule::kSame && is.fp == RegisterRule::kAtCfaOffset && made.cfa == CfaRule::kSpOffset) {
            same = same && -is.fp_offset > made.cfa_offset;
          }
        }
        result.compared += instruction->bytes;
        if (!same) result.wrong.push_back(at);
      }
      at += instruction->bytes;
    }
  }
  return result;
}

TEST(CodeRowsTest, NoRowOfRealLibrariesIsWrong) {
#ifndef __x86_64__
  GTEST_SKIP() << "the libraries here are of another machine";
#endif
  uint64_t compared = 0;
  // Measured: 63 %, 79 %, 58 % of their code; the rest are switches, calls of other libraries, and what nothing leads
  // to.
  const std::pair<const char*, double> kLibraries[] = {
      {"libc.so.6", 0.50}, {"libm.so.6", 0.60}, {"libstdc++.so.6", 0.45}};
  for (const auto& [name, share] : kLibraries) {
    std::string path;
    for (const char* folder : {"/lib/x86_64-linux-gnu/", "/usr/lib/x86_64-linux-gnu/", "/usr/lib64/", "/lib64/"}) {
      if (path.empty() && std::filesystem::exists(folder + std::string(name))) path = folder + std::string(name);
    }
    if (path.empty()) continue;
    const Comparison result = CompareRows(path);
    std::printf("    %s: %.1f %% of %lu bytes of code have a row, %lu compared, %lu without truth\n", path.c_str(),
                100.0 * static_cast<double>(result.row_bytes) / static_cast<double>(result.code_bytes),
                static_cast<unsigned long>(result.code_bytes), static_cast<unsigned long>(result.compared),
                static_cast<unsigned long>(result.without_truth));
    EXPECT_TRUE(result.wrong.empty()) << path << ": " << result.wrong.size() << ", the first at 0x" << std::hex
                                      << result.wrong.front();
    EXPECT_GT(static_cast<double>(result.row_bytes), share * static_cast<double>(result.code_bytes)) << path;
    compared += result.compared;
  }
  if (compared == 0) GTEST_SKIP() << "no library is where Debian and Fedora have them";
}

TEST(CodeRowsTest, MostOfMuslHasRows) {
  const char* path = "/usr/lib/x86_64-linux-musl/libc.so";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "musl is not installed";
  const auto bytes = ReadWholeFile(path, 64 << 20);
  ASSERT_TRUE(bytes.ok());
  const auto image = ElfImage::Parse(AsBytes(*bytes));
  auto table = CfiTable::Open(*image);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_TRUE(table->may_cover_little());
  EXPECT_TRUE(table->Extent().is_next_to_none());
  const auto rows = RowsOfCode(*image);
  ASSERT_TRUE(rows.ok()) << rows.status();
  auto compiled = CompiledCfi::FromCode(*rows);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  for (size_t i = 0; i < rows->rows.size(); ++i) {
    const CodeRow& row = rows->rows[i];
    ASSERT_LT(row.start, row.end);
    ASSERT_TRUE(i == 0 || rows->rows[i - 1].end <= row.start);
    ASSERT_EQ(compiled->At(row.start).row, row.row);
    ASSERT_EQ(compiled->At({row.end.value - 1}).row, row.row);
  }
  table->Supplement(*std::move(compiled));
  const CfiExtent extent = table->Extent();
  EXPECT_GT(static_cast<double>(extent.covered_bytes), 0.8 * static_cast<double>(extent.code_bytes));
}

}  // namespace
}  // namespace clrsampler
