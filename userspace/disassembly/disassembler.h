// Machine code as text, by Capstone.
//
// The code is that of a profiled process, and Capstone is a large library of C: a process that has rights gives them up
// between Open and the first call of All.
#ifndef CLRSAMPLER_DISASSEMBLY_DISASSEMBLER_H_
#define CLRSAMPLER_DISASSEMBLY_DISASSEMBLER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "formats/profile/model_code.h"

namespace clrsampler {

struct Instruction {
  uint32_t offset = 0;  // from the first byte of the code
  uint32_t size = 0;    // in bytes
  std::string text;     // "mov rax, qword ptr [rdi + 8]"; ".byte 0x06" of what is no instruction
};

// One thread. Move-only.
class Disassembler {
 public:
  // Unavailable: Capstone is not installed.
  static absl::StatusOr<Disassembler> Open();

  Disassembler(Disassembler&&) noexcept;
  Disassembler& operator=(Disassembler&&) noexcept;
  ~Disassembler();

  // All of the code, without a gap. `address`: of its first byte, which the text of jumps and calls names.
  std::vector<Instruction> All(CodeMachine machine, absl::string_view code, uint64_t address) const;

 private:
  struct State;
  explicit Disassembler(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_DISASSEMBLY_DISASSEMBLER_H_
