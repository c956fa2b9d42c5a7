/* The program's own text, with the helpers and the section macros of libbpf replaced. */
#include "unit/bpf/switch_clock_host.h"

#include <bpf/bpf_core_read.h>
#include <linux/types.h>

/* In place of <bpf/bpf_helpers.h>. */
#define __BPF_HELPERS__
#define SEC(name)
#define __uint(name, val) int(*name)[val]
#define __type(name, val) __typeof__(val)* name
#undef bpf_core_field_exists
#define bpf_core_field_exists(field) 1

static __u64 monotonic;

static __u64 bpf_ktime_get_ns(void) { return monotonic; }
static void* bpf_map_lookup_elem(void* map, const void* key);

#include "switch_clock.bpf.h"

static struct switch_clock the_clock;

static void* bpf_map_lookup_elem(void* map, const void* key) {
  return map == &switch_clocks && *(const __u32*)key == 0 ? &the_clock : 0;
}

void host_clock_reset(void) { the_clock = (struct switch_clock){0}; }

uint64_t host_time_of_switch(uint64_t scheduler_ns, uint64_t monotonic_ns) {
  struct rq queue = {.clock = scheduler_ns};
  struct cfs_rq fair = {.rq = &queue};
  struct task_struct task = {.se = {.cfs_rq = &fair}};

  monotonic = monotonic_ns;
  return time_of_switch(&task).ns;
}

bool host_has_run_within(struct host_notes notes, uint64_t limit_ns, uint64_t monotonic_ns) {
  struct task_struct task = {.sched_info = {.last_arrival = notes.last_arrival}};

  return has_run_within(&task, limit_ns, monotonic_ns);
}

uint64_t host_arrival_before(struct host_notes notes, uint64_t scheduler_ns, uint64_t monotonic_ns) {
  struct task_struct task = {.sched_info = {.last_arrival = notes.last_arrival}};
  const struct switch_time at = {.ns = monotonic_ns, .scheduler = scheduler_ns};

  return has_arrival(&task, at) ? arrival_before(&task, at).ns : 0;
}

uint64_t host_time_in_queues(struct host_notes notes, uint64_t scheduler_ns) {
  struct task_struct task = {.sched_info = {.run_delay = notes.run_delay, .last_queued = notes.last_queued}};

  return time_in_queues(&task, scheduler_ns);
}
