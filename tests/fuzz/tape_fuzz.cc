// Saved streams that somebody else made, played by the whole pipeline: nothing of this machine is asked, and it ends.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "pipeline/recorder.h"
#include "tape/recorded_tape.h"
#include "tape/run_json.h"

namespace {

constexpr uint64_t kMaxBytes = 8 << 20;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace clrsampler;
  absl::StatusOr<std::string> records =
      UnpackTape(absl::string_view(reinterpret_cast<const char*>(data), size), kMaxBytes);
  if (!records.ok()) return 0;
  RecordedTape tape(*std::move(records));
  absl::StatusOr<RecordOptions> options = ParseRunJson(tape.run());
  if (!options.ok()) return 0;
  options->tape = &tape;
  const absl::StatusOr<std::unique_ptr<Recorder>> recorder = Recorder::Create(*options);
  if (!recorder.ok()) return 0;
  if (!(*recorder)->Run(nullptr).ok()) return 0;
  // Every sample that was taken is somewhere in the account.
  const Account& account = (*recorder)->account();
  if (account.samples_written > account.samples_taken) __builtin_trap();
  return 0;
}
