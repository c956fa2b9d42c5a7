// garbage LIBRARY PREFIX: calls PREFIX_work of the library, with one kind of garbage after the other, until it is
// ended.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  char name[64];
  snprintf(name, sizeof name, "%s_work", argv[2]);
  void* library = dlopen(argv[1], RTLD_NOW);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  void (*work)(uint64_t);
  void* symbol = dlsym(library, name);
  if (symbol == NULL) return 1;
  memcpy(&work, &symbol, sizeof work);
  printf("ready %d\n", (int)getpid());
  fflush(stdout);
  for (uint64_t i = 0;; i++) work(i % 5);
}
