// bpf/switch_clock.bpf.h compiled for this machine, for one CPU.
#ifndef CLRSAMPLER_TESTS_UNIT_BPF_SWITCH_CLOCK_HOST_H_
#define CLRSAMPLER_TESTS_UNIT_BPF_SWITCH_CLOCK_HOST_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// As before the first switch.
void host_clock_reset(void);
// The time of a switch at which the scheduler has read `scheduler_ns`, and CLOCK_MONOTONIC would read `monotonic_ns`.
uint64_t host_time_of_switch(uint64_t scheduler_ns, uint64_t monotonic_ns);

#ifdef __cplusplus
}
#endif

#endif
