#include "process/hung_places.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace clrsampler {

void HungPlaces::NoteHang(absl::string_view place, uint64_t worker, MonotonicTime now) {
  recent_ = last_ != MonotonicTime::Min() && now.ns - last_.ns < kForgiveNs ? std::min(recent_ + 1, kMaxHalvings) : 1;
  last_ = now;
  const auto found = hung_.find(place);
  if (found != hung_.end()) {
    Hang& hang = found->second;
    hang.rest_ns = std::min(2 * hang.rest_ns, kLongestRestNs);
    hang.again = {now.ns + hang.rest_ns};
    hang.worker = worker;
    return;
  }
  if (hung_.size() >= kMaxPlaces) {
    hung_.erase(std::min_element(hung_.begin(), hung_.end(),
                                 [](const auto& a, const auto& b) { return a.second.again < b.second.again; }));
  }
  hung_.emplace(place, Hang{{now.ns + kFirstRestNs}, kFirstRestNs, worker});
}

void HungPlaces::NoteAnswer(absl::string_view place) {
  if (!hung_.empty()) hung_.erase(place);
}

bool HungPlaces::MayAsk(absl::string_view place, MonotonicTime now, IsStuck is_stuck) const {
  if (hung_.empty()) return true;
  for (absl::string_view at = place;;) {
    const auto found = hung_.find(at);
    if (found != hung_.end() && (now < found->second.again || is_stuck(found->second.worker))) return false;
    const size_t slash = at.rfind('/');
    if (slash == absl::string_view::npos) return true;
    at = at.substr(0, slash);
  }
}

uint64_t HungPlaces::PatienceNs(uint64_t usual_ns, MonotonicTime now) const {
  if (last_ == MonotonicTime::Min() || now.ns - last_.ns >= kForgiveNs) return usual_ns;
  return usual_ns >> recent_;
}

bool HungPlaces::TakeCpuWait(uint64_t ns, MonotonicTime now) {
  const uint64_t passed_ns = now.ns - std::min(cpu_wait_counted_, now).ns;
  cpu_wait_left_ns_ = std::min(cpu_wait_left_ns_ + passed_ns / kCpuWaitPart, kMostCpuWaitNs);
  cpu_wait_counted_ = now;
  if (ns > cpu_wait_left_ns_) return false;
  cpu_wait_left_ns_ -= ns;
  return true;
}

std::string PlaceOf(std::optional<uint32_t> owner, uint64_t mount_namespace, absl::string_view path) {
  return absl::StrCat(owner ? absl::StrCat(*owner) : "?", " ", mount_namespace, ":",
                      path.substr(0, std::min(path.size(), path.rfind('/'))));
}

}  // namespace clrsampler
