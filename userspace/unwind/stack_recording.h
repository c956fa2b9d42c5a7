// Samples with all that unwinding them needs: what a run saw, to be unwound again anywhere, without the program.
//
// The boundary is CodeFinder: a recording holds the raw samples, what was known about each address that was asked for,
// and the stacks that came out. Regression tests and the fuzzer live on them (tests/testdata/stacks).
//
// Format, little-endian: "CLRSTK2\n", then u32 counts of functions, answers and stacks, then these, field by field in
// the order of the structs below; of samples only what unwinding needs. In the place of an answer's `between_rows` is a
// byte of flags: 1 that, 2 `leaf_row` follows `row`, 4 `no_call`, 8 `call_distance` follows. A format for our own
// tools: another version is refused.
#ifndef CLRSAMPLER_UNWIND_STACK_RECORDING_H_
#define CLRSAMPLER_UNWIND_STACK_RECORDING_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "unwind/code_finder.h"
#include "unwind/frame_chain.h"

namespace clrsampler {

struct RecordedStack {
  std::vector<uint64_t> record;  // wire_cpu_sample and what follows it
  UserStack result;
};

class StackRecording {
 public:
  std::vector<RecordedStack> stacks;
  absl::flat_hash_map<uint64_t, CodeAt> code;  // by address

  std::string Serialize() const;
  // DataLoss: not a recording, or damaged. `bytes` need not outlive it.
  static absl::StatusOr<StackRecording> Parse(std::span<const std::byte> bytes);
  // The part before the first damage. For fuzzing, which damages.
  static StackRecording ParseFront(std::span<const std::byte> bytes);
};

// Answers from a recording; kUnknown for what was never asked.
class RecordedCode : public CodeFinder {
 public:
  explicit RecordedCode(const StackRecording& recording) : recording_(recording) {}
  const CodeAt& At(uint64_t address) override;

 private:
  const StackRecording& recording_;
  CodeAt unknown_;
};

// Passes questions on and writes the answers down.
class CodeRecorder : public CodeFinder {
 public:
  CodeRecorder(CodeFinder& code, StackRecording& recording) : code_(code), recording_(recording) {}
  const CodeAt& At(uint64_t address) override;

 private:
  CodeFinder& code_;
  StackRecording& recording_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_UNWIND_STACK_RECORDING_H_
