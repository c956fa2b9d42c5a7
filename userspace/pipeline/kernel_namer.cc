#include "pipeline/kernel_namer.h"

#include <utility>

namespace clrsampler {
namespace {

// All but the leaf are return addresses, which may already belong to the next function.
uint64_t LookupAddress(std::span<const uint64_t> addresses, size_t i) {
  return i == 0 ? addresses[i] : addresses[i] - 1;
}

}  // namespace

void KernelNamer::Append(std::span<const uint64_t> addresses, std::vector<FrameId>& out) {
  wanted_.clear();
  for (size_t i = 0; i < addresses.size(); ++i) {
    const uint64_t address = LookupAddress(addresses, i);
    if (!known_.contains(address)) wanted_.push_back(address);
  }
  if (!wanted_.empty()) Learn(wanted_);
  for (size_t i = addresses.size(); i-- > 0;) out.push_back(known_.at(LookupAddress(addresses, i)));
}

void KernelNamer::Learn(std::span<const uint64_t> addresses) {
  if (look_up_) {
    const absl::StatusOr<std::vector<std::string>> texts = look_up_(addresses);
    if (texts.ok() && texts->size() == addresses.size()) {
      for (size_t i = 0; i < addresses.size(); ++i) {
        known_[addresses[i]] =
            frames_.Intern(KernelFrame((*texts)[i], style_)
                               .value_or(Frame{FrameKind::kKernel, NameSource::kNone, "[kernel]", "", ""}));
      }
      return;
    }
    look_up_ = nullptr;  // what failed once fails again; the file is always there
  }
  for (const uint64_t address : addresses) known_[address] = frames_.Intern(fallback_.Resolve(address));
}

}  // namespace clrsampler
