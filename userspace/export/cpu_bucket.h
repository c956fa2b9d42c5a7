// CPU time that is earned by waiting and spent by work: so much of a CPU in the long run, and so much at once after a
// rest. Work may cost more than is there, since nobody knows before what it costs; then it is owed. Pure.
#ifndef CLRSAMPLER_EXPORT_CPU_BUCKET_H_
#define CLRSAMPLER_EXPORT_CPU_BUCKET_H_

#include <algorithm>
#include <cstdint>

namespace clrsampler {

struct CpuAllowance {
  double share = 0;       // of one CPU
  uint64_t burst_ns = 0;  // at once
};

class CpuBucket {
 public:
  CpuBucket(const CpuAllowance& allowance, uint64_t now_ns)
      : allowance_(allowance), left_ns_(static_cast<double>(allowance.burst_ns)), at_ns_(now_ns) {}

  void Spend(uint64_t cpu_ns, uint64_t now_ns) {
    left_ns_ = LeftNs(now_ns) - static_cast<double>(cpu_ns);
    at_ns_ = std::max(at_ns_, now_ns);
  }
  // Until nothing is owed; 0: now.
  uint64_t WaitNs(uint64_t now_ns) const {
    return static_cast<uint64_t>(std::max(0.0, -LeftNs(now_ns)) / allowance_.share);
  }
  // Nothing was spent for so long that it might as well be new.
  bool Full(uint64_t now_ns) const { return LeftNs(now_ns) >= static_cast<double>(allowance_.burst_ns); }

 private:
  // A clock that goes back earns nothing.
  double LeftNs(uint64_t now_ns) const {
    const uint64_t passed_ns = now_ns - std::min(now_ns, at_ns_);
    return std::min(left_ns_ + static_cast<double>(passed_ns) * allowance_.share,
                    static_cast<double>(allowance_.burst_ns));
  }

  CpuAllowance allowance_;
  double left_ns_;  // at at_ns_; below 0: owed
  uint64_t at_ns_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_EXPORT_CPU_BUCKET_H_
