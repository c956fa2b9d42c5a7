// The record and the variable of OTEP 4947, by which tests/apps/trace_threads publishes its ids. Built once for each
// way in which a compiler reaches the variable.
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct record {
  uint8_t ids[24];
  volatile uint8_t valid;
  uint8_t trace_flags;
  uint16_t attributes_bytes;
};

#define EXPORT __attribute__((visibility("default")))

EXPORT __thread struct record* volatile otel_thread_ctx_v1;

// The trace id and the span id, 24 bytes: what this thread works for from now on.
EXPORT void trace_attach(const uint8_t* ids) {
  struct record* record = otel_thread_ctx_v1;
  if (record == NULL) record = calloc(1, sizeof *record);
  record->valid = 0;
  atomic_signal_fence(memory_order_seq_cst);
  memcpy(record->ids, ids, sizeof record->ids);
  atomic_signal_fence(memory_order_seq_cst);
  record->valid = 1;
  otel_thread_ctx_v1 = record;
}

EXPORT void trace_detach(void) {
  if (otel_thread_ctx_v1 != NULL) otel_thread_ctx_v1->valid = 0;
}
