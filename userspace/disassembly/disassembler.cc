#include "disassembly/disassembler.h"

#include <capstone/capstone.h>

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "status/status.h"
#ifndef CLRSAMPLER_LINKS_CAPSTONE
#include "os/loaded_library.h"
#endif

namespace clrsampler {
namespace {

// The functions of the library that are called.
struct Capstone {
#ifdef CLRSAMPLER_LINKS_CAPSTONE
  decltype(cs_open)* open = cs_open;
  decltype(cs_option)* option = cs_option;
  decltype(cs_close)* close = cs_close;
  decltype(cs_malloc)* make = cs_malloc;
  decltype(cs_free)* free = cs_free;
  decltype(cs_disasm_iter)* next = cs_disasm_iter;

  static bool Load() { return true; }
#else
  // Its records have another shape in the next major version.
  static_assert(CS_API_MAJOR == 4);
  LoadedLibrary library{"libcapstone.so.4"};
  decltype(cs_open)* open = nullptr;
  decltype(cs_option)* option = nullptr;
  decltype(cs_close)* close = nullptr;
  decltype(cs_malloc)* make = nullptr;
  decltype(cs_free)* free = nullptr;
  decltype(cs_disasm_iter)* next = nullptr;

  bool Load() {
    return library.Load("cs_open", open) && library.Load("cs_option", option) && library.Load("cs_close", close) &&
           library.Load("cs_malloc", make) && library.Load("cs_free", free) && library.Load("cs_disasm_iter", next);
  }
#endif
};

}  // namespace

struct Disassembler::State {
  Capstone capstone;
  std::array<csh, kCodeMachineCount> handles{};

  ~State() {
    for (csh& handle : handles) {
      if (handle != 0) capstone.close(&handle);
    }
  }
};

absl::StatusOr<Disassembler> Disassembler::Open() {
  auto state = std::make_unique<State>();
  Capstone& capstone = state->capstone;
  if (!capstone.Load()) {
    return WithHint(absl::UnavailableError("instructions have no text: the library Capstone is not installed"),
                    "apt-get install libcapstone4, or what your distribution calls its version 4");
  }
  const std::pair<cs_arch, cs_mode> machines[kCodeMachineCount] = {{CS_ARCH_X86, CS_MODE_64},
                                                                   {CS_ARCH_ARM64, CS_MODE_LITTLE_ENDIAN}};
  for (int i = 0; i < kCodeMachineCount; ++i) {
    if (capstone.open(machines[i].first, machines[i].second, &state->handles[i]) != CS_ERR_OK) {
      return absl::UnavailableError("this build of Capstone does not know x86-64 and arm64");
    }
    capstone.option(state->handles[i], CS_OPT_SKIPDATA, CS_OPT_ON);
  }
  return Disassembler(std::move(state));
}

Disassembler::Disassembler(std::unique_ptr<State> state) : state_(std::move(state)) {}
Disassembler::Disassembler(Disassembler&&) noexcept = default;
Disassembler& Disassembler::operator=(Disassembler&&) noexcept = default;
Disassembler::~Disassembler() = default;

std::vector<Instruction> Disassembler::All(CodeMachine machine, absl::string_view code, uint64_t address) const {
  std::vector<Instruction> instructions;
  const csh handle = state_->handles[static_cast<size_t>(machine)];
  const auto* at = reinterpret_cast<const uint8_t*>(code.data());
  size_t left = code.size();
  uint64_t next = address;
  uint32_t offset = 0;
  cs_insn* const instruction = state_->capstone.make(handle);
  while (instruction != nullptr && state_->capstone.next(handle, &at, &left, &next, instruction)) {
    if (instruction->size == 0 || instruction->size > code.size() - offset) break;
    const absl::string_view operands = instruction->op_str;
    instructions.push_back(
        {offset, instruction->size, absl::StrCat(instruction->mnemonic, operands.empty() ? "" : " ", operands)});
    offset += instruction->size;
  }
  if (instruction != nullptr) state_->capstone.free(instruction, 1);
  for (; offset < code.size(); ++offset) {
    instructions.push_back({offset, 1, absl::StrFormat(".byte 0x%02x", static_cast<uint8_t>(code[offset]))});
  }
  return instructions;
}

}  // namespace clrsampler
