#include "clr/memory/method_unwind_reader.h"

#include <gmock/gmock.h>

#include <optional>
#include <string>
#include <vector>

#include "unit/clr/memory/fake_runtime.h"
#include "unit/formats/unwind/arm64_records.h"

namespace clrsampler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kMethodCode = 0x7F0000000000, kMethodCodeBytes = 0x10000;
constexpr uint64_t kMethod = 0x100;
constexpr uint32_t kUnwind = 0x1000, kFuncletUnwind = 0x2000;

// A method of 40 bytes and a funclet of 32, in a process of arm64. On x86-64: memory_methods_test.
class MethodUnwindReaderArm64Test : public testing::Test {
 protected:
  MethodUnwindReaderArm64Test() : fake_({10, ElfMachine::kArm64}) {
    heap_ = &fake_.AddHeap(kMethodCode, kMethodCodeBytes);
    header_ = fake_.AddCode(*heap_, kMethod, kBytes, 0xAAAA, kFuncletBytes);
    table_ = header_ + fake_.layout.code_header.unwinds;
    fake_.memory.Set<uint32_t>(table_ + 4, kUnwind);
    fake_.memory.Set<uint32_t>(table_ + 8 + 4, kFuncletUnwind);
    fake_.memory.SetBytes(kMethodCode + kUnwind, Hex(kArm64Plain.unwind));
    fake_.memory.SetBytes(kMethodCode + kFuncletUnwind, Hex(kArm64Funclet.unwind));
  }
  std::vector<CodeUnwind> Parts() {
    MethodCode code;
    code.range = {kMethodCode + kMethod, kMethodCode + kMethod + kBytes + kFuncletBytes};
    code.header = header_;
    EXPECT_TRUE(fake_.memory.Read(header_, code.identity));
    return ReadUnwindParts(fake_.memory, fake_.layout, code);
  }
  std::vector<CodeUnwind> PartsWith(uint64_t address, uint32_t value) {
    const uint32_t before = *fake_.memory.Value<uint32_t>(address);
    fake_.memory.Set<uint32_t>(address, value);
    std::vector<CodeUnwind> parts = Parts();
    fake_.memory.Set<uint32_t>(address, before);
    return parts;
  }

  static constexpr uint32_t kBytes = 40, kFuncletBytes = 32;
  FakeRuntime fake_;
  FakeRuntime::Heap* heap_ = nullptr;
  uint64_t header_ = 0;
  uint64_t table_ = 0;  // of RUNTIME_FUNCTIONs
};

TEST_F(MethodUnwindReaderArm64Test, EachPartHasItsRecord) {
  EXPECT_THAT(Parts(),
              ElementsAre(CodeUnwind{0, kBytes, absl::HexStringToBytes(kArm64Plain.unwind)},
                          CodeUnwind{kBytes, kBytes + kFuncletBytes, absl::HexStringToBytes(kArm64Funclet.unwind)}));
}

TEST_F(MethodUnwindReaderArm64Test, WhatCannotBeHadOrContradictsTheMethodIsNothing) {
  EXPECT_THAT(PartsWith(table_ + 4, 0x70000000), IsEmpty()) << "no memory is there";
  EXPECT_THAT(PartsWith(table_ + 4, kUnwind | 1), IsEmpty()) << "packed";
  EXPECT_THAT(PartsWith(table_ + 8, kMethod + kBytes - 4), IsEmpty()) << "parts overlap";
  EXPECT_THAT(PartsWith(table_ + 8, kMethod - 4), IsEmpty()) << "a funclet lies before its method";
  EXPECT_THAT(PartsWith(table_ + 8, 0xFFFFFFF0), IsEmpty()) << "a funclet ends behind all addresses";
  EXPECT_THAT(PartsWith(kMethodCode + kUnwind, 0x00540000 | 10), IsEmpty()) << "of another version";
  EXPECT_THAT(PartsWith(kMethodCode + kUnwind, 0x00500000), IsEmpty()) << "no instruction";
  EXPECT_THAT(PartsWith(kMethodCode + kFuncletUnwind, 0x10300009), IsEmpty())
      << "one instruction more than the method has";
}

}  // namespace
}  // namespace clrsampler
