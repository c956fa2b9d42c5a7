// A program whose line with the work is known: one call after the other of a function that divides, for a number of
// seconds. "ready PID" tells that it has begun.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static volatile uint64_t sink;

__attribute__((noinline)) static uint64_t dear(uint64_t rounds) {
  uint64_t sum = rounds;
  for (uint64_t i = 1; i <= rounds; ++i) sum = sum / i + (sum % (i | 7)) * i + (sum ^ i) / 5;  // the hot line
  return sum;
}

__attribute__((noinline)) static void statements(void) {
  sink += 1;
  sink += dear(100000);  // the line of the caller
  sink += 2;
}

int main(int argc, char** argv) {
  const time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 60);
  printf("ready %d\n", (int)getpid());
  fflush(stdout);
  while (time(NULL) < end) statements();
  return 0;
}
