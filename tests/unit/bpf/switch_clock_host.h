// bpf/switch_clock.bpf.h and bpf/scheduler_notes.bpf.h compiled for this machine, for one CPU.
#ifndef CLRSAMPLER_TESTS_UNIT_BPF_SWITCH_CLOCK_HOST_H_
#define CLRSAMPLER_TESTS_UNIT_BPF_SWITCH_CLOCK_HOST_H_

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// As before the first switch.
void host_clock_reset(void);
// The time of a switch at which the scheduler has read `scheduler_ns`, and CLOCK_MONOTONIC would read `monotonic_ns`.
uint64_t host_time_of_switch(uint64_t scheduler_ns, uint64_t monotonic_ns);

// Notes of the scheduler about a task: struct sched_info of kernel_types.bpf.h.
struct host_notes {
  uint64_t run_delay, last_arrival, last_queued;
};
bool host_has_run_within(struct host_notes notes, uint64_t limit_ns, uint64_t monotonic_ns);
// When a task that leaves its CPU at `scheduler_ns`, and at `monotonic_ns`, has got it; 0: not known.
uint64_t host_arrival_before(struct host_notes notes, uint64_t scheduler_ns, uint64_t monotonic_ns);
uint64_t host_time_in_queues(struct host_notes notes, uint64_t scheduler_ns);

#ifdef __cplusplus
}
#endif

#endif
