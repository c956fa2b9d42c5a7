#include "runtime_events/hook_images.h"

#include <gtest/gtest.h>

namespace clrsampler {
namespace {

Mapping At(uint64_t start, const char* path) {
  Mapping mapping;
  mapping.start = start;
  mapping.end = start + 0x1000;
  mapping.inode = 1;
  mapping.kind = MappingKind::kFile;
  mapping.path = path;
  return mapping;
}

uint64_t JitOf(std::initializer_list<const char*> paths) {
  Process process(ProcessKey{1, 1}, TargetFiles("/proc", 1));
  uint64_t start = 0;
  for (const char* path : paths) process.mappings.Insert(At(start += 0x1000, path));
  const Mapping* jit = FindJit(process);
  return jit == nullptr ? 0 : jit->start / 0x1000;
}

TEST(HookImagesTest, TheCompilerIsFoundByItsName) {
  EXPECT_EQ(JitOf({"/app/libcoreclr.so", "/app/libclrjit.so", "/app/libSystem.Native.so"}), 2u);
  EXPECT_EQ(JitOf({"/app/libcoreclr.so", "/app/notlibclrjit.so", "/libclrjit.so/other.so"}), 0u);
}

// An update of the runtime replaces the files of services that run.
TEST(HookImagesTest, TheCompilersFileMayHaveBeenReplaced) {
  EXPECT_EQ(JitOf({"/app/libcoreclr.so (deleted)", "/app/libclrjit.so (deleted)"}), 2u);
}

}  // namespace
}  // namespace clrsampler
