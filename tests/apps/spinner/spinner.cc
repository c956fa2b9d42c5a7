// spinner SECONDS: uses a CPU inside libspin.so.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

extern "C" uint64_t spin(double seconds);

int main(int argc, char** argv) {
  std::printf("ready %d\n", getpid());
  std::fflush(stdout);
  return spin(argc > 1 ? std::atof(argv[1]) : 1) == 0 ? 1 : 0;
}
