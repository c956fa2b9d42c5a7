// runtime_names_check RUNTIME: which functions does a runtime's image name by its own tables?
// runtime_names_check --helpers MAJOR x64|arm64: what does the program know of this version's table of JIT helpers?
//
// Prints a line for each table and for each function:
//   table KIND ADDRESS FUNCTIONS MAJOR
//   KIND ADDRESS NAME
// and "in doubt: N"; of the second a line for each helper, "HELPER none|dynamic|dynamic-function|function [FUNCTION]".
// Exit status 1: it is no runtime, or it can't be used; 2: the file can't be read.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "formats/runtime/jit_helper_tables.h"
#include "formats/runtime/runtime_functions.h"
#include "os/file_io.h"
#include "os/mapped_file.h"

namespace clrsampler {
namespace {

int Fail(int status, const absl::Status& error) {
  std::printf("refused: %s\n", std::string(error.message()).c_str());
  return status;
}

int Run(const char* path) {
  constexpr uint64_t kMaxBytes = uint64_t{4} << 30;
  const absl::StatusOr<UniqueFd> fd = OpenForReading(path);
  if (!fd.ok()) return Fail(2, fd.status());
  const absl::StatusOr<MappedFile> file = MappedFile::Map(fd->get(), 0, 0, kMaxBytes);
  if (!file.ok()) return Fail(2, file.status());
  const absl::StatusOr<ElfImage> image = ElfImage::Parse(file->bytes());
  if (!image.ok()) return Fail(1, image.status());
  const absl::StatusOr<RuntimeFunctions> functions = RuntimeFunctions::Read(*image);
  if (!functions.ok()) return Fail(1, functions.status());
  for (const RuntimeTable& table : functions->tables()) {
    std::printf("table %s 0x%llx %zu %d\n", std::string(RuntimeTableText(table.kind)).c_str(),
                static_cast<unsigned long long>(table.at.value), table.functions, table.major);
  }
  for (const RuntimeFunction& one : functions->all()) {
    std::printf("%s 0x%llx %s\n", std::string(RuntimeTableText(one.table)).c_str(),
                static_cast<unsigned long long>(one.start.value), one.name.c_str());
  }
  std::printf("in doubt: %zu\n", functions->in_doubt());
  return 0;
}

int PrintHelpers(int major, ElfMachine machine) {
  for (const JitHelperTable& table : JitHelperTables(machine)) {
    if (table.major != major) continue;
    for (const JitHelper& one : table.helpers) {
      std::printf("%s %s%s %s\n", std::string(one.helper).c_str(), std::string(JitHelperKindText(one.kind)).c_str(),
                  one.kind == JitHelperKind::kDynamic && one.leads_to_function ? "-function" : "",
                  std::string(one.function).c_str());
    }
    return 0;
  }
  std::printf("refused: nothing is known of version %d\n", major);
  return 1;
}

}  // namespace
}  // namespace clrsampler

int main(int argc, char** argv) {
  using clrsampler::ElfMachine;
  if (argc == 2) return clrsampler::Run(argv[1]);
  if (argc == 4 && std::string(argv[1]) == "--helpers") {
    return clrsampler::PrintHelpers(std::atoi(argv[2]),
                                    std::string(argv[3]) == "arm64" ? ElfMachine::kArm64 : ElfMachine::kX64);
  }
  std::fprintf(stderr, "usage: runtime_names_check RUNTIME\n       runtime_names_check --helpers MAJOR x64|arm64\n");
  return 2;
}
