#include "formats/elf/line_sequences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>

#include "absl/status/status.h"
#include "formats/byte_reader.h"
#include "formats/elf/elf_image.h"
#include "os/file_io.h"
#include "test_paths.h"
#include "unit/formats/elf/find_symbol.h"

namespace clrsampler {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

template <typename T>
std::string Bytes(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

struct Shape {
  uint16_t version = 5;
  uint8_t address_bytes = 8, instruction_bytes = 1, operations = 1, line_range = 14, opcode_base = 13;
};

// A table with this program; its header has 3 bytes behind the fields that are read, as names of files are.
std::string Table(const std::string& program, Shape shape = {}) {
  const std::string operands("\0\1\1\1\1\0\0\0\1\0\0\1", 12);
  std::string fields;
  for (const uint8_t field :
       {shape.instruction_bytes, shape.operations, uint8_t{1}, uint8_t{0xfb}, shape.line_range, shape.opcode_base}) {
    fields.push_back(static_cast<char>(field));
  }
  fields += operands.substr(0, shape.opcode_base - 1) + "abc";
  const std::string body = Bytes(shape.version) + Bytes(shape.address_bytes) + Bytes(uint8_t{0}) +
                           Bytes(static_cast<uint32_t>(fields.size())) + fields + program;
  return Bytes(static_cast<uint32_t>(body.size())) + body;
}

std::string SetAddress(uint64_t address) { return std::string("\0\x09\x02", 3) + Bytes(address); }
const std::string kEnd("\0\x01\x01", 3), kCopy("\x01", 1);

absl::StatusOr<std::vector<LineSequence>> Listed(const std::string& section) {
  return ListLineSequences(AsBytes(section));
}

TEST(LineSequencesTest, EachWayToMoveTheAddress) {
  // advance_pc 300; const_add_pc: (255 - 13) / 14 = 17; fixed_advance_pc 0x1000; special 27: (27 - 13) / 14 = 1
  const std::string program = SetAddress(0x4000) + kCopy + std::string("\x02\xac\x02", 3) + "\x08" +
                              std::string("\x09\x00\x10", 3) + "\x1b" + kEnd;
  EXPECT_THAT(*Listed(Table(program)), ElementsAre(LineSequence{0x4000, 0x4000 + 300 + 17 + 0x1000 + 1, 0}));
}

TEST(LineSequencesTest, WhatMovesNothingIsSteppedOver) {
  // advance_line, set_file, set_column, negate_stmt, set_isa, an extended one that nobody knows
  const std::string program = SetAddress(0x4000) + std::string("\x03\x80\x01\x04\x01\x05\x02\x06\x0c\x07", 10) +
                              std::string("\0\x03\x80zz", 5) + kCopy + "\x02\x10" + kEnd;
  EXPECT_THAT(*Listed(Table(program)), ElementsAre(LineSequence{0x4000, 0x4010, 0}));
}

TEST(LineSequencesTest, AnOpcodeThatIsNewerTakesItsOperandsAlong) {
  // Opcode 13 of a table whose special ones begin at 14; the header says that it has one operand.
  std::string table = Table(SetAddress(0x4000) + kCopy + "\x0d\x7f" + "\x02\x10" + kEnd, {.opcode_base = 13});
  const std::string from = Bytes(uint8_t{13}) + std::string("\0\1\1\1\1\0\0\0\1\0\0\1", 12) + "abc";
  const std::string to = Bytes(uint8_t{14}) + std::string("\0\1\1\1\1\0\0\0\1\0\0\1\1", 13) + "bc";
  table.replace(table.find(from), from.size(), to);
  EXPECT_THAT(*Listed(table), ElementsAre(LineSequence{0x4000, 0x4010, 0}));
}

TEST(LineSequencesTest, SequencesOfAllTablesAreInOrder) {
  const auto sequence = [](uint64_t at) { return SetAddress(at) + kCopy + "\x02\x10" + kEnd; };
  const std::string first = Table(sequence(0x9000) + sequence(0) + sequence(0x5000));
  EXPECT_THAT(*Listed(first + Table(sequence(0x7000), {.instruction_bytes = 4})),
              ElementsAre(LineSequence{0x5000, 0x5010, 0}, LineSequence{0x7000, 0x7040, first.size()},
                          LineSequence{0x9000, 0x9010, 0}))
      << "what is at 0 was thrown away by the linker";
}

TEST(LineSequencesTest, OtherKindsOfTablesAreRefused) {
  for (const Shape& other : {Shape{.version = 4}, Shape{.address_bytes = 4}, Shape{.operations = 2}}) {
    EXPECT_TRUE(absl::IsUnimplemented(Listed(Table(kEnd, other)).status()));
  }
  EXPECT_TRUE(absl::IsUnimplemented(Listed(Bytes(uint32_t{0xffffffff}) + Bytes(uint64_t{0})).status()));
}

TEST(LineSequencesTest, DamagedTablesAreAnError) {
  const std::string whole = Table(SetAddress(0x4000) + kCopy + "\x02\x10" + kEnd);
  EXPECT_THAT(*Listed(""), IsEmpty());
  for (size_t length = 1; length < whole.size(); ++length) {
    EXPECT_FALSE(Listed(whole.substr(0, length)).ok()) << length;
  }
  EXPECT_TRUE(absl::IsDataLoss(Listed(Table(kEnd, {.line_range = 0})).status()));
  EXPECT_TRUE(absl::IsDataLoss(Listed(Table(std::string("\0\x20\x01", 3))).status()));
}

TEST(LineSequencesTest, SequencesOfTheCompilerHoldItsFunctions) {
  const std::string file = *ReadWholeFile(ElfFixture("liblines.so"), 64 << 20);
  const auto image = ElfImage::Parse(AsBytes(file));
  const auto sequences = ListLineSequences(*image->SectionBytes(*image->FindSection(".debug_line")));
  ASSERT_TRUE(sequences.ok()) << sequences.status();
  const uint64_t entry = FindSymbol(*image, "exported_entry")->address.value;
  EXPECT_TRUE(std::any_of(sequences->begin(), sequences->end(),
                          [&](const LineSequence& one) { return one.begin <= entry && entry < one.end; }));
}

}  // namespace
}  // namespace clrsampler
