// The files of tests/testdata/pdb.
#ifndef CLRSAMPLER_TESTS_UNIT_FORMATS_PDB_PDB_FIXTURE_H_
#define CLRSAMPLER_TESTS_UNIT_FORMATS_PDB_PDB_FIXTURE_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "unit/formats/pe/fixture.h"

namespace clrsampler {

inline std::string ReadPdbFixture(absl::string_view name) { return ReadFixture(absl::StrCat("../pdb/", name)); }

// The points that System.Reflection.Metadata reads of it.
inline std::string ExpectedText(absl::string_view name) {
  std::string text = ReadPdbFixture(absl::StrCat(name, ".expected"));
  text.pop_back();  // the empty line behind each file
  return text;
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_TESTS_UNIT_FORMATS_PDB_PDB_FIXTURE_H_
