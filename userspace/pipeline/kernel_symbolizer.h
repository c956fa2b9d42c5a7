// Kernel addresses -> frames. An address of the kernel proper is asked once. An address of a module or a BPF program,
// or of nothing, may be something else's after an unload and a load, of which nobody tells. Such an answer holds for
// kModuleNs and is asked for again then (from /proc/kallsyms, kFileNs), so that is how long a wrong name can last.
//
// A recording meets a few hundred kernel addresses. Asking the kernel for just those through a BPF program costs some 2
// ms; reading all of /proc/kallsyms costs 45 ms (122,000 lines, Linux 6.18), more than everything else at start-up
// together. Kernels without syscall programs (before 5.14) get the file.
#ifndef CLRSAMPLER_PIPELINE_KERNEL_SYMBOLIZER_H_
#define CLRSAMPLER_PIPELINE_KERNEL_SYMBOLIZER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "formats/names/frame_text.h"
#include "os/clock.h"
#include "status/thread_checker.h"
#include "symbols/frame.h"
#include "symbols/kernel_symbols.h"

namespace clrsampler {

// Main loop only.
class KernelSymbolizer {
 public:
  // One text for each address, "ksys_read" or "nf_hook_slow [nf_conntrack]", empty where the kernel knows none.
  using LookUp = std::function<absl::StatusOr<std::vector<std::string>>(std::span<const uint64_t>)>;

  // `look_up` may be empty: then /proc/kallsyms is read at the first address.
  KernelSymbolizer(FrameTable& frames, NameStyle style, LookUp look_up, KernelSymbols fallback)
      : frames_(frames), style_(style), look_up_(std::move(look_up)), fallback_(std::move(fallback)) {}

  // Frames of a kernel stack that was sampled at `time`, `addresses` leaf first, appended to `out` outermost first.
  // Returns until when they hold.
  MonotonicTime Append(std::span<const uint64_t> addresses, MonotonicTime time, std::vector<FrameId>& out);

  static constexpr uint64_t kModuleNs = 1'000'000'000;
  static constexpr uint64_t kFileNs = 30'000'000'000;  // at 45 ms a time

  // Why kernel frames have no names; OK when they have.
  const absl::Status& status() const { return fallback_.status(); }

 private:
  struct Known {
    FrameId frame = 0;
    MonotonicTime until = MonotonicTime::Max();
  };
  void Learn(std::span<const uint64_t> addresses, MonotonicTime time);
  Known FromFile(uint64_t address, MonotonicTime time);

  FrameTable& frames_;
  NameStyle style_;
  LookUp look_up_;
  KernelSymbols fallback_;
  MonotonicTime file_read_;
  absl::flat_hash_map<uint64_t, Known> known_;
  std::vector<uint64_t> wanted_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_KERNEL_SYMBOLIZER_H_
