// mapping_churn COUNT CHANGES_A_SECOND SECONDS: has COUNT executable mappings, replaces one after the other, and runs
// code in those that are new. 0 changes: as many as it can. Says how many there were.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

// mov ecx, 2000; dec ecx; jnz; ret
static const unsigned char kLoop[] = {0xb9, 0xd0, 0x07, 0x00, 0x00, 0xff, 0xc9, 0x75, 0xfc, 0xc3};

static double Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void Map(char* at, size_t page) {
  if (mmap(at, page, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != at) {
    perror("mmap");
    exit(1);
  }
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const size_t count = (size_t)atol(argv[1]), page = (size_t)sysconf(_SC_PAGESIZE);
  const double rate = atof(argv[2]), seconds = atof(argv[3]);
  // With a hole behind each, or the kernel would make one of all.
  char* base = mmap(NULL, 2 * count * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED || munmap(base, 2 * count * page) != 0) return 1;
  for (size_t i = 0; i < count; ++i) Map(base + 2 * i * page, page);
  printf("ready %d\n", getpid());
  fflush(stdout);
  const double begin = Now();
  unsigned long changes = 0;
  for (double now = begin; now < begin + seconds; now = Now()) {
    if (rate > 0 && (double)changes >= (now - begin) * rate) {
      usleep(5000);
      continue;
    }
    char* at = base + 2 * (changes % count) * page;
    Map(at, page);
#if defined(__x86_64__)
    memcpy(at, kLoop, sizeof kLoop);
    void (*run)(void);
    memcpy(&run, &at, sizeof run);
    run();
#endif
    ++changes;
  }
  printf("truth {\"changes\":%lu}\n", changes);
  return 0;
}
