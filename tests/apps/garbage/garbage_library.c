// Functions whose stacks are full of what looks like frames, for tests/e2e/hostile_stacks_live_test.py. There are
// return addresses of functions that call nobody here (decoys). There are pairs of frame pointer and return address,
// some of which lead to themselves and to each other. Built twice: with unwind data, with which nothing of it may be
// shown, and without, where what is shown must be in doubt.
#include <stdint.h>

#ifndef NAME
#define NAME(name) honest_##name
#endif
#define EXPORT __attribute__((visibility("default"), noinline, noclone))
#define LOCAL static __attribute__((noinline, noclone))
// More than the sampler ships behind the last frame would be a gap that nobody can look into: marked, but of no use
// here.
enum { kWords = 256 };

#define DECOY(number)                                                        \
  EXPORT uint64_t decoy_##number(volatile uint64_t* words) {                 \
    sink(words);                                                             \
    return words[number] + (uint64_t)(uintptr_t)__builtin_return_address(0); \
  }

#ifdef WITH_DECOYS
LOCAL void sink(volatile uint64_t* words) { words[0]++; }
DECOY(1)
DECOY(2)
DECOY(3)
#else
extern uint64_t decoy_1(volatile uint64_t*), decoy_2(volatile uint64_t*), decoy_3(volatile uint64_t*);
#endif

// Behind the call that each begins with.
LOCAL uint64_t NAME(inside)(int i) {
  uint64_t (*const decoys[])(volatile uint64_t*) = {decoy_1, decoy_2, decoy_3};
  return (uint64_t)(uintptr_t)decoys[i % 3] + 5;
}

// Burns CPU time with any value in the frame pointer; GCC saves and restores it.
LOCAL void NAME(burn)(uint64_t frame_pointer, volatile uint64_t* words) {
  uint64_t rounds = 2000000;
  __asm__ volatile("mov %[value], %%rbp\n1: dec %[rounds]\njnz 1b"
                   : [rounds] "+r"(rounds)
                   : [value] "r"(frame_pointer)
                   : "rbp", "cc", "memory");
  words[1]++;
}

// The leaf itself has the garbage in its frame, and calls nobody.
LOCAL void NAME(leaf)(uint64_t kind) {
  volatile uint64_t words[kWords];
  for (int i = 0; i < kWords; i++) words[i] = NAME(inside)(i);
  const uint64_t base = (uint64_t)(uintptr_t)words;
  uint64_t frame_pointer = kind == 0 ? 0x1234567 : base + 64;
  for (int i = 8; i + 1 < kWords; i += 2) {
    words[i] = kind == 1   ? base + 8 * (uint64_t)(i + 2)           // a chain that rises through all of it
               : kind == 2 ? base + 8 * (uint64_t)i                 // each its own caller
               : kind == 3 ? base + 8 * (uint64_t)(i % 4 ? 8 : 10)  // two that call each other
                           : ~0ull - (uint64_t)i;
    words[i + 1] = NAME(inside)(i / 2);
  }
  uint64_t rounds = 2000000;
  __asm__ volatile("mov %[value], %%rbp\n1: dec %[rounds]\njnz 1b"
                   : [rounds] "+r"(rounds)
                   : [value] "r"(frame_pointer)
                   : "rbp", "cc", "memory");
  words[1]++;
}

LOCAL void NAME(caller)(uint64_t kind) {
  volatile uint64_t words[kWords];
  for (int i = 0; i < kWords; i++) words[i] = i % 2 ? NAME(inside)(i) : (uint64_t)(uintptr_t)&words[(i + 2) % kWords];
  NAME(burn)((uint64_t)(uintptr_t)&words[kind == 0 ? 1 : 2 * kind], words);
  words[2]++;
}

EXPORT void NAME(work)(uint64_t kind) {
  NAME(leaf)(kind);
  NAME(caller)(kind);
}
