// A process with the kernel's default limit of mappings, announced one by one from the top downwards, as mmap places
// them.
#include <benchmark/benchmark.h>

#include <cstdint>

#include "process/mappings.h"

namespace clrsampler {
namespace {

constexpr uint64_t kMappings = 60'000;
constexpr uint64_t kTop = 0x7fff00000000;

Mapping Code(uint64_t i) {
  Mapping mapping;
  mapping.start = kTop - (i + 1) * 0x2000;
  mapping.end = mapping.start + 0x1000;
  mapping.path = "/usr/lib/x86_64-linux-gnu/libexample.so.1";
  mapping.kind = MappingKind::kFile;
  return mapping;
}

void BM_Insert60kMappings(benchmark::State& state) {
  for (auto _ : state) {
    MappingTable table;
    for (uint64_t i = 0; i < kMappings; ++i) table.Insert(Code(i));
    if (table.all().size() != kMappings) state.SkipWithError("lost mappings");
  }
}
BENCHMARK(BM_Insert60kMappings)->Unit(benchmark::kMillisecond);

void BM_FindAmong60kMappings(benchmark::State& state) {
  MappingTable table;
  for (uint64_t i = 0; i < kMappings; ++i) table.Insert(Code(i));
  uint64_t turn = 0;
  for (auto _ : state) {
    turn = (turn + 7919) % kMappings;
    if (table.Find(kTop - turn * 0x2000 - 0x1800) == nullptr) state.SkipWithError("lost mapping");
  }
}
BENCHMARK(BM_FindAmong60kMappings);

}  // namespace
}  // namespace clrsampler
