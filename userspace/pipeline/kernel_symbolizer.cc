#include "pipeline/kernel_symbolizer.h"

#include <algorithm>
#include <utility>

namespace clrsampler {
namespace {

// All but the leaf are return addresses, which may already belong to the next function.
uint64_t LookupAddress(std::span<const uint64_t> addresses, size_t i) {
  return i == 0 ? addresses[i] : addresses[i] - 1;
}

// Whether it will be the same for as long as the machine runs.
bool IsOfKernelProper(const Frame& frame) { return frame.named() && frame.module == "kernel"; }

}  // namespace

MonotonicTime KernelSymbolizer::Append(std::span<const uint64_t> addresses, MonotonicTime time,
                                       std::vector<FrameId>& out) {
  main_loop_.Check();
  wanted_.clear();
  for (size_t i = 0; i < addresses.size(); ++i) {
    const uint64_t address = LookupAddress(addresses, i);
    const auto known = known_.find(address);
    if (known == known_.end() || known->second.until <= time) wanted_.push_back(address);
  }
  if (!wanted_.empty()) Learn(wanted_, time);
  MonotonicTime until = MonotonicTime::Max();
  for (size_t i = addresses.size(); i-- > 0;) {
    const Known& known = known_.at(LookupAddress(addresses, i));
    out.push_back(known.frame);
    until = std::min(until, known.until);
  }
  return until;
}

void KernelSymbolizer::Learn(std::span<const uint64_t> addresses, MonotonicTime time) {
  if (look_up_) {
    const absl::StatusOr<std::vector<std::string>> texts = look_up_(addresses);
    if (texts.ok() && texts->size() == addresses.size()) {
      for (size_t i = 0; i < addresses.size(); ++i) {
        Frame frame =
            KernelFrame((*texts)[i], style_).value_or(Frame{FrameKind::kKernel, NameSource::kNone, "[kernel]", "", ""});
        const MonotonicTime until = IsOfKernelProper(frame) ? MonotonicTime::Max() : MonotonicTime{time.ns + kModuleNs};
        known_[addresses[i]] = {frames_.Intern(std::move(frame)), until};
      }
      return;
    }
    look_up_ = nullptr;  // what failed once fails again; the file is always there
  }
  for (const uint64_t address : addresses) known_[address] = FromFile(address, time);
}

KernelSymbolizer::Known KernelSymbolizer::FromFile(uint64_t address, MonotonicTime time) {
  if (!fallback_.loaded()) file_read_ = time;
  Frame frame = fallback_.Resolve(address);
  if (!fallback_.status().ok()) return {frames_.Intern(std::move(frame))};  // it will not become readable
  if (!IsOfKernelProper(frame) && time.ns >= file_read_.ns + kFileNs) {
    fallback_.Reload();
    file_read_ = time;
    frame = fallback_.Resolve(address);
  }
  const MonotonicTime until = IsOfKernelProper(frame) ? MonotonicTime::Max() : MonotonicTime{file_read_.ns + kFileNs};
  return {frames_.Intern(std::move(frame)), until};
}

}  // namespace clrsampler
