// Threads that wake each other all the time, with work of a fixed size in between.
//
// usage: switches SECONDS PAIRS SPINS [pinned]
//
// Two threads of a pair hand a byte to and fro through pipes, and count to SPINS each time they have it. Each 50 ms, a
// line tells three numbers so far. The first is the time, in seconds of CLOCK_MONOTONIC. The second is how often bytes
// were handed over. The third is how often CPUs of this machine have switched to another task.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_PAIRS 64

static atomic_bool ends;
static unsigned long spins;

struct end {
  int in, out;
  _Atomic unsigned long turns;  // written by its thread alone
};

static void* Play(void* argument) {
  struct end* end = argument;
  char byte;
  while (read(end->in, &byte, 1) == 1 && !atomic_load_explicit(&ends, memory_order_relaxed)) {
    for (unsigned long i = 0; i < spins; ++i) __asm__ volatile("" ::: "memory");
    const unsigned long before = atomic_load_explicit(&end->turns, memory_order_relaxed);
    atomic_store_explicit(&end->turns, before + 1, memory_order_relaxed);
    if (write(end->out, &byte, 1) != 1) break;
  }
  close(end->out);  // so that the other one ends, too
  return NULL;
}

static double Seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static long long Switches(void) {
  FILE* stat = fopen("/proc/stat", "r");
  char line[4096];
  long long switches = -1;
  while (stat != NULL && switches < 0 && fgets(line, sizeof line, stat) != NULL) {
    if (sscanf(line, "ctxt %lld", &switches) != 1) switches = -1;
  }
  if (stat != NULL) fclose(stat);
  return switches;
}

// All threads of a pair on one CPU.
static bool Pin(pthread_t thread, int pair) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(pair % (int)sysconf(_SC_NPROCESSORS_ONLN), &cpus);
  return pthread_setaffinity_np(thread, sizeof cpus, &cpus) == 0;
}

static void Tell(struct end (*sides)[2], int pairs) {
  unsigned long turns = 0;
  for (int i = 0; i < pairs; ++i) {
    for (int side = 0; side < 2; ++side) turns += atomic_load_explicit(&sides[i][side].turns, memory_order_relaxed);
  }
  printf("%.6f %lu %lld\n", Seconds(), turns, Switches());
}

int main(int argc, char** argv) {
  static struct end sides[MAX_PAIRS][2];
  static pthread_t threads[MAX_PAIRS][2];
  const bool pinned = argc == 5 && strcmp(argv[4], "pinned") == 0;
  const bool complete = argc == 4 || pinned;
  const double seconds = complete ? atof(argv[1]) : 0;
  const int pairs = complete ? atoi(argv[2]) : 0;
  if (seconds <= 0 || pairs < 1 || pairs > MAX_PAIRS) {
    fprintf(stderr, "usage: switches SECONDS PAIRS SPINS [pinned]\n");
    return 2;
  }
  spins = strtoul(argv[3], NULL, 10);
  for (int i = 0; i < pairs; ++i) {
    int there[2], back[2];
    if (pipe(there) != 0 || pipe(back) != 0) return 1;
    sides[i][0] = (struct end){.in = back[0], .out = there[1]};
    sides[i][1] = (struct end){.in = there[0], .out = back[1]};
    for (int side = 0; side < 2; ++side) {
      if (pthread_create(&threads[i][side], NULL, Play, &sides[i][side]) != 0) return 1;
      if (pinned && !Pin(threads[i][side], i)) return 1;
    }
    if (write(back[1], "", 1) != 1) return 1;
  }
  setvbuf(stdout, NULL, _IOLBF, 0);
  for (const double end = Seconds() + seconds; Seconds() < end;) {
    Tell(sides, pairs);
    usleep(50000);
  }
  atomic_store(&ends, true);
  for (int i = 0; i < pairs; ++i) {
    for (int side = 0; side < 2; ++side) pthread_join(threads[i][side], NULL);
  }
  return 0;
}
