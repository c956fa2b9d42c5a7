// Functions that tests/apps/shapes and tests/apps/workload call. They have no frame pointers, and burn CPU time or call
// back. Each has its own symbol in the table, and does something behind each call, so that none becomes a jump.
#include <pthread.h>
#include <stdint.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default"), noinline, noclone))
#define LOCAL static __attribute__((noinline, noclone))

typedef int64_t (*callback)(int64_t);

EXPORT int64_t shapes_inner(callback function, int64_t n) { return function(n + 1) + 1; }
EXPORT int64_t shapes_call_pointer(callback function, int64_t n) { return shapes_inner(function, n + 1) + 1; }
EXPORT int64_t shapes_call_delegate(callback function, int64_t n) { return shapes_inner(function, n + 2) + 2; }

// More values live across the call than there are registers that survive it, so the frame pointer's register holds one
// of them.
EXPORT int64_t shapes_call_pressed(callback function, int64_t n) {
  int64_t a = n * 3, b = n ^ 5, c = n + 7, d = n << 2, e = n - 9, f = n * n, g = n | 11;
  for (int i = 0; i < 2; i++) {
    const int64_t back = function(n + i);
    a += back ^ b, b += c * back, c ^= d + back, d -= e, e += f ^ a, f ^= g, g += back;
  }
  return a ^ b ^ c ^ d ^ e ^ f ^ g;
}

LOCAL int64_t shapes_leaf(int64_t n) {
  uint64_t x = (uint64_t)n | 1;
  for (int i = 0; i < 8000; i++) x ^= x << 13, x ^= x >> 7, x ^= x << 17;
  return (int64_t)x;
}
LOCAL int64_t shapes_middle(int64_t n) { return shapes_leaf(n + 1) + 1; }
EXPORT int64_t shapes_burn(int64_t n) { return shapes_middle(n + 1) + 1; }

// A call without transition must be short.
LOCAL int64_t shapes_leaf_suppressed(int64_t n) {
  uint64_t x = (uint64_t)n | 1;
  for (int i = 0; i < 200; i++) x ^= x << 12, x ^= x >> 25, x ^= x << 27;
  return (int64_t)x;
}
EXPORT int64_t shapes_burn_suppressed(int64_t n) { return shapes_leaf_suppressed(n + 1) + 1; }

static pthread_t thread;
static callback thread_function;
static volatile int* thread_stop;

EXPORT int64_t shapes_thread_step(int64_t n) { return thread_function(n + 1) + 1; }

EXPORT void* shapes_thread(void* unused) {
  (void)unused;
  int64_t sum = 0;
  while (!*thread_stop) sum += shapes_thread_step(sum & 7);
  return (void*)(sum & 1);
}

EXPORT int shapes_start_thread(callback function, volatile int* stop) {
  thread_function = function;
  thread_stop = stop;
  return pthread_create(&thread, 0, shapes_thread, 0);
}

EXPORT void shapes_join_thread(void) { pthread_join(thread, 0); }

static int64_t monotonic_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

// Uses the CPU for this time. The clock is read rarely, so that nearly all of it is spent in this library.
EXPORT int64_t shapes_spin(int64_t nanoseconds) {
  const int64_t end = monotonic_ns() + nanoseconds;
  int64_t sum = 0;
  while (monotonic_ns() < end) sum += shapes_leaf(sum);
  return sum;
}
