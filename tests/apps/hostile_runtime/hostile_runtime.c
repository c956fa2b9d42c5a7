// A process that looks like .NET and lies. It has the real libcoreclr.so loaded, and runs code in memory of the name
// that the runtime's heaps have. It keeps writing nonsense where a debugger would begin to read: the table for
// debuggers, and two levels of what it points to. Pointers lead in circles, to the kernel, to nowhere, into code, one
// byte beside things, and change while they are followed.
//
//   hostile_runtime LIBCORECLR SECONDS
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { kPages = 64, kWords = kPages * 512, kTableWords = 64 };

static uint64_t* web;    // pages whose words point to each other
static uint64_t* table;  // the runtime's table for debuggers
static uint8_t* code;

static uint64_t Lie(uint64_t* seed) {
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  uint64_t random = *seed >> 17;
  switch (random % 10) {
    case 0:
      return 0;
    case 1:
      return 0xffffffff80000000u + random % 4096;  // the kernel
    case 2:
      return (uint64_t)web + random % (kWords * 8);  // not aligned, perhaps
    case 3:
      return (uint64_t)code + random % 4096;
    case 4:
      return (uint64_t)table + 8 * (random % kTableWords);
    case 5:
      return random % 64;
    case 6:
      return UINT64_MAX - random % 4096;
    default:
      return (uint64_t)(web + random % kWords);
  }
}

static void* KeepLying(void* unused) {
  uint64_t seed = 12345;
  (void)unused;
  for (;;) {
    for (int i = 0; i < 4096; i++) web[(seed >> 20) % kWords] = Lie(&seed);
    // Entry 0 is where the map of code is: mostly in the runtime's image, where it has to be.
    for (int i = 0; i < kTableWords; i++) table[i] = i == 0 && seed % 4 ? (uint64_t)table : Lie(&seed);
    usleep(200);
  }
  return NULL;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  void* runtime = dlopen(argv[1], RTLD_NOW);
  table = runtime ? dlsym(runtime, "g_dacTable") : NULL;
  if (!table) {
    fprintf(stderr, "%s: %s\n", argv[1], dlerror());
    return 1;
  }
  uintptr_t first = (uintptr_t)table & ~(uintptr_t)4095;
  mprotect((void*)first, (uintptr_t)table + kTableWords * 8 - first, PROT_READ | PROT_WRITE);
  web = mmap(NULL, kWords * 8, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

  int memory = memfd_create("doublemapper", MFD_CLOEXEC);
  if (memory < 0 || ftruncate(memory, 65536)) return 1;
  uint8_t* writable = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  code = mmap(NULL, 65536, PROT_READ | PROT_EXEC, MAP_SHARED, memory, 0);
  if (writable == MAP_FAILED || code == MAP_FAILED || web == MAP_FAILED) return 1;
  uint64_t seed = 1;
  for (int i = 0; i < 65536 / 8; i++) ((uint64_t*)writable)[i] = Lie(&seed);
  // mov ecx, 1000000; dec ecx; jnz; ret
  static const uint8_t kSpin[] = {0xb9, 0x40, 0x42, 0x0f, 0x00, 0xff, 0xc9, 0x75, 0xfc, 0xc3};
  memcpy(writable + 4096, kSpin, sizeof kSpin);

  pthread_t liar;
  if (pthread_create(&liar, NULL, KeepLying, NULL)) return 1;
  pthread_setname_np(liar, ".NET Finalizer");  // what a runtime that is up has
  printf("ready %d\n", getpid());
  fflush(stdout);
  for (time_t end = time(NULL) + atoi(argv[2]); time(NULL) < end;) ((void (*)(void))(code + 4096))();
  return 0;
}
