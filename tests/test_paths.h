// Where the files are that tests read. One source file knows the folders, so that all others compile to the same object
// in any checkout.
#ifndef CLRSAMPLER_TESTS_TEST_PATHS_H_
#define CLRSAMPLER_TESTS_TEST_PATHS_H_

#include <string>

#include "absl/strings/string_view.h"

namespace clrsampler {

// Below tests/testdata.
std::string TestData(absl::string_view path);
// Made by the build, of tests/unit/formats/elf/fixture_code.cc.
std::string ElfFixture(absl::string_view name);
// The profiler library, where the build puts it.
std::string ProfilerLibrary();
// Made by the build, of tests/unit/clr/runtime_fixture.c and memory/fake_coreclr.c.
std::string RuntimeFixture(absl::string_view name);

}  // namespace clrsampler

#endif  // CLRSAMPLER_TESTS_TEST_PATHS_H_
