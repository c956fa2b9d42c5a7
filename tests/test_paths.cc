#include "test_paths.h"

#include "absl/strings/str_cat.h"

namespace clrsampler {

std::string TestData(absl::string_view path) { return absl::StrCat(SOURCE_FOLDER "/tests/testdata/", path); }
std::string ElfFixture(absl::string_view name) { return absl::StrCat(BUILD_FOLDER "/elf_fixtures/", name); }
std::string ProfilerLibrary() { return BUILD_FOLDER "/libclrsampler_profiler.so"; }
std::string RuntimeFixture(absl::string_view name) { return absl::StrCat(BUILD_FOLDER "/runtime_fixtures/", name); }

}  // namespace clrsampler
