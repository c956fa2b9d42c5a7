// Any bytes as one function's code, on both machines. Properties: it ends. A site is a branch that is taken where
// something is not less, with its sum in a register. The called function stands behind a call instruction. No two sites
// share a place. A function that reports has its facts in two known ways only. All that is found was worth the search.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "clr/hooks/allocation_scan_arm64.h"
#include "clr/hooks/allocation_scan_x64.h"
#include "formats/byte_reader.h"

namespace {

using namespace clrsampler;

constexpr VirtualAddress kStart{0x401000};
constexpr int kArm64Registers = 31, kX64Registers = 16;

void Require(bool holds) {
  if (!holds) __builtin_trap();
}

bool IsRegister(const ProbeValue& value, int registers) {
  return value.kind == ProbeValue::Kind::kRegister && value.number >= 0 && value.number < registers;
}

// b.ge; jge with either distance.
bool IsBranchIfNotLess(std::span<const std::byte> code, size_t at, bool arm64) {
  if (arm64) return at % 4 == 0 && (LoadAt<uint32_t>(code, at).value_or(0) & 0xff00001f) == 0x5400000a;
  const auto is_prefix = [](uint8_t byte) { return byte == 0x66 || byte == 0xf2 || byte == 0xf3 || byte >> 4 == 4; };
  while (is_prefix(LoadAt<uint8_t>(code, at).value_or(0))) ++at;
  return LoadAt<uint8_t>(code, at) == 0x7d || LoadAt<uint16_t>(code, at) == 0x8d0f;
}

bool IsCalled(std::span<const std::byte> code, VirtualAddress target, bool arm64) {
  for (size_t at = 0; at < code.size(); at += arm64 ? 4 : 1) {
    const uint32_t word = LoadAt<uint32_t>(code, at).value_or(0);
    const uint64_t distance = static_cast<uint64_t>(static_cast<int32_t>(word << 6) >> 4);
    if (arm64 && word >> 26 == 0x25 && kStart.value + at + distance == target.value) return true;
    const auto relative = LoadAt<int32_t>(code, at + 1);
    const bool is_call = !arm64 && LoadAt<uint8_t>(code, at) == 0xe8 && relative.has_value();
    if (is_call && kStart.value + at + 5 + static_cast<uint64_t>(int64_t{*relative}) == target.value) return true;
  }
  return false;
}

void Check(std::span<const std::byte> code, const AllocationReports& found, bool worth_while, bool arm64) {
  if (!found.called.empty() || !found.sites.empty() || found.resets != 0) Require(worth_while);
  for (const VirtualAddress& called : found.called) Require(IsCalled(code, called, arm64));
  for (size_t i = 0; i < found.sites.size(); ++i) {
    const AllocationSite& site = found.sites[i];
    Require(site.offset < code.size() && IsBranchIfNotLess(code, site.offset, arm64));
    Require(IsRegister(site.facts.bytes, arm64 ? kArm64Registers : kX64Registers));
    Require(site.facts.object.kind != ProbeValue::Kind::kUnknown && !site.facts.of_one_heap);
  }
  if (!arm64) return;
  for (size_t i = 1; i < found.sites.size(); ++i) Require(found.sites[i - 1].offset < found.sites[i].offset);
}

void CheckFacts(const std::optional<AllocationFacts>& facts, int first, int second, int third, int fourth) {
  if (!facts) return;
  const auto in = [](int number) { return ProbeValue{ProbeValue::Kind::kRegister, number}; };
  const AllocationFacts alone{in(first), in(second), in(third), false};
  const AllocationFacts of_one_heap{in(second), in(third), in(fourth), true};
  Require(*facts == alone || *facts == of_one_heap);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span code(reinterpret_cast<const std::byte*>(data), size);
  Check(code, x64::FindAllocationReports(code, kStart), x64::MayReportAllocations(code), /*arm64=*/false);
  CheckFacts(x64::FactsOfReport(code), 5, 4, 1, 2);  // rdi, rsi, rdx, rcx
  Check(code, arm64::FindAllocationReports(code, kStart), arm64::MayReportAllocations(code), /*arm64=*/true);
  CheckFacts(arm64::FactsOfReport(code), 0, 1, 2, 3);
  return 0;
}
