/*
 * A program that counts its own functions and blocks as an instrumenting compiler would have it do: counters in the
 * section __llvm_mipraw, what they mean in __llvm_mipmap (docs/mip.md). mip_program_test.py builds it with
 *
 *   gcc -g -O0 -fno-toplevel-reorder -DMODULE_HASH=0x... [-DCOVERAGE] mip_counters.c
 *
 * usage: mip_counters RAW_FILE WORD...     each word is a letter of what is called, in that order
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

/* The sections grow in the order of the text: headers first. */
#ifdef COVERAGE
#define KINDS "3" /* function and block coverage */
#define RECORD(name) ".balign 1\nraw_" #name ": .byte 0xff\n"
#else
#define KINDS "14" /* call count, time stamp, block coverage */
#define RECORD(name) ".balign 4\nraw_" #name ": .long -1, -1\n"
#endif

asm(".pushsection __llvm_mipraw,\"aw\",@progbits\n"
    ".balign 8\n"
    ".ascii \"\\373MIP\"\n .short 8, 0x11\n .long " KINDS ", " TEXT(MODULE_HASH) "\n .quad 0\n .long 0, 32\n"
    ".popsection\n"
    ".pushsection __llvm_mipmap,\"\",@progbits\n"
    ".balign 8\n"
    "1: .ascii \"\\373MIP\"\n .short 8, 0x14\n .long " KINDS ", " TEXT(MODULE_HASH) "\n"
    ".quad __start___llvm_mipraw - 1b\n .long 0, 32\n"
    ".popsection");

/* After the function: its record and its entry. blocks: one ".long" with the offsets of blocks, and a ".byte" for each.
 */
#define MAP(name, length, block_count, offsets, bytes)                                                       \
  asm(".text\nend_" #name                                                                                    \
      ":\n"                                                                                                  \
      ".pushsection __llvm_mipraw,\"aw\",@progbits\n" RECORD(name) bytes                                     \
      "\n.popsection\n"                                                                                      \
      ".pushsection __llvm_mipmap,\"\",@progbits\n"                                                          \
      ".balign 8\n"                                                                                          \
      "1: .quad raw_" #name " - 1b, " #name " - 1b\n .long end_" #name " - " #name ", 0x1234, " #block_count \
      "\n" offsets "\n .long " #length "\n .ascii \"" #name "\"\n.popsection")

#ifdef COVERAGE
struct record {
  uint8_t covered;
  uint8_t blocks[2];
};
#define ENTER(name) (raw_##name.covered = 0)
#else
struct record {
  uint32_t calls, time;
  uint8_t blocks[2];
} __attribute__((packed));
static uint32_t functions_called;
static void enter(struct record* record) {
  if (record->calls == UINT32_MAX) {
    record->calls = 0;
    record->time = ++functions_called;
  }
  if (record->calls < UINT32_MAX - 1) record->calls++;
}
#define ENTER(name) enter(&raw_##name)
#endif
#define BLOCK(name, index)                       \
  do {                                           \
    asm volatile("block_" #name "_" #index ":"); \
    raw_##name.blocks[index] = 0;                \
  } while (0)

extern struct record raw_alpha, raw_beta, raw_gamma_of_x, raw_never, raw_main;
extern char __start___llvm_mipraw[], __stop___llvm_mipraw[];

int alpha(int x) {
  ENTER(alpha);
  if (x > 1) {
    BLOCK(alpha, 0);
    return x;
  }
  BLOCK(alpha, 1);
  return -x;
}
MAP(alpha, 5, 2, ".long block_alpha_0 - alpha, block_alpha_1 - alpha", ".byte -1, -1");

int beta(int x) {
  ENTER(beta);
  return x + 1;
}
MAP(beta, 4, 0, "", "");

int gamma_of_x(int x) {
  ENTER(gamma_of_x);
  if (x == 0) BLOCK(gamma_of_x, 0);
  return beta(x);
}
MAP(gamma_of_x, 10, 1, ".long block_gamma_of_x_0 - gamma_of_x", ".byte -1");

int never(int x) {
  ENTER(never);
  BLOCK(never, 0);
  return x;
}
MAP(never, 5, 1, ".long block_never_0 - never", ".byte -1");

int main(int argc, char** argv) {
  int sum = 0;
  FILE* file;
  ENTER(main);
  for (int i = 2; i < argc; i++) {
    if (strcmp(argv[i], "a") == 0) sum += alpha(i);
    if (strcmp(argv[i], "A") == 0) sum += alpha(0);
    if (strcmp(argv[i], "b") == 0) sum += beta(i);
    if (strcmp(argv[i], "g") == 0) sum += gamma_of_x(i);
    if (strcmp(argv[i], "x") == 0) sum += never(i);
  }
  file = fopen(argv[1], "w");
  fwrite(__start___llvm_mipraw, 1, __stop___llvm_mipraw - __start___llvm_mipraw, file);
  fclose(file);
  return sum == -1;
}
MAP(main, 4, 0, "", "");
