// pdb_text FILE...: what userspace/formats/pdb reads of portable PDBs, and of assemblies with one inside, as
// tests/apps/oracle_pdb prints it. Ends with 1 at a file that can't be read.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/status/statusor.h"
#include "unit/formats/pdb/pdb_text.h"

namespace clrsampler {
namespace {

absl::StatusOr<std::string> TextOf(const char* path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (LooksLikePe(AsBytes(bytes))) {
    const absl::StatusOr<PeImage> image = PeImage::Parse(AsBytes(bytes));
    if (!image.ok()) return image.status();
    return AssemblyText(*image);
  }
  const absl::StatusOr<PortablePdb> pdb = PortablePdb::Open(AsBytes(bytes));
  if (!pdb.ok()) return pdb.status();
  return PdbText(*pdb);
}

}  // namespace
}  // namespace clrsampler

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const absl::StatusOr<std::string> text = clrsampler::TextOf(argv[i]);
    if (!text.ok()) {
      std::fprintf(stderr, "%s: %s\n", argv[i], text.status().ToString().c_str());
      return 1;
    }
    std::printf("%s\n", text->c_str());
  }
  return 0;
}
