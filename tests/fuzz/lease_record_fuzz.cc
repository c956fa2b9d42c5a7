// Any lease file. Properties: what is read is written and read again as it is, and all that repairs rely on holds: a
// directory with a plain path, and files with the names of this target's perf maps.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "clr/perf_map/lease_record.h"

namespace {

using namespace clrsampler;

void Require(bool holds) {
  if (!holds) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto record = ParseLeaseRecord({reinterpret_cast<const char*>(data), size});
  if (!record.ok()) return 0;
  Require(record->target.tgid != 0 && record->target.namespace_pid != 0);
  Require(!record->directory.empty() && record->directory[0] == '/');
  Require(record->directory.find('\0') == std::string::npos && record->directory.find('\n') == std::string::npos);
  const std::vector<std::string> names = PerfMapFileNames(record->target.namespace_pid);
  for (const LeasedFile& file : record->files) Require(std::find(names.begin(), names.end(), file.name) != names.end());
  const std::string text = EncodeLeaseRecord(*record);
  const auto again = ParseLeaseRecord(text);
  Require(again.ok() && EncodeLeaseRecord(*again) == text);
  // A writer that was killed leaves a part of the last line.
  const auto cut = ParseLeaseRecord(text + "file 1 2 perf-");
  Require(cut.ok() && cut->files == record->files);
  return 0;
}
