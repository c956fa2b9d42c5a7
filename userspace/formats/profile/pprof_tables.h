// The tables of a pprof profile: all but its samples.
#ifndef CLRSAMPLER_FORMATS_PROFILE_PPROF_TABLES_H_
#define CLRSAMPLER_FORMATS_PROFILE_PPROF_TABLES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "formats/profile/profile_model.h"

namespace clrsampler {

inline constexpr uint32_t kMaxPprofLines = 256;       // functions that are inlined into each other at one address
inline constexpr size_t kMaxPprofSampleTypes = 1024;  // of a file; profilers write up to five
inline constexpr size_t kMaxPprofTable = 4 * kReadLimits.frames;  // entries of any table of the file

struct PprofUnitTypes {
  uint64_t type = 0, unit = 0;  // indexes of strings
};
struct PprofMapping {
  uint64_t filename = 0, build_id = 0;
};
struct PprofFunction {
  uint64_t name = 0, system_name = 0, filename = 0;
};
struct PprofLine {
  uint64_t function = 0;
  uint32_t line = 0, column = 0;  // 0: not known, or more than a file has
};
struct PprofLocation {
  uint64_t mapping = 0, address = 0;
  uint32_t lines_begin = 0, lines_end = 0;    // in PprofFile::lines
  uint32_t frames_begin = 0, frames_end = 0;  // in the reader's frames, root first; both 0: not looked up yet
};
struct PprofText {
  uint32_t begin, size;  // in the file; 8 bytes, because a text may be as short as 2
};

// All but the samples: the tables stand behind them as a rule.
struct PprofFile {
  std::vector<PprofUnitTypes> sample_types;
  uint64_t default_type = 0;
  PprofUnitTypes period_type;
  int64_t period = 0, time_nanos = 0, duration_nanos = 0;
  std::vector<uint64_t> comments;
  std::vector<PprofText> texts;
  absl::flat_hash_map<uint64_t, PprofMapping> mappings;
  absl::flat_hash_map<uint64_t, PprofFunction> functions;
  absl::flat_hash_map<uint64_t, PprofLocation> locations;
  std::vector<PprofLine> lines;  // of a location the innermost first

  bool full() const {
    return texts.size() >= kMaxPprofTable || lines.size() >= kMaxPprofTable || mappings.size() >= kReadLimits.frames ||
           functions.size() >= kReadLimits.frames || locations.size() >= kReadLimits.frames;
  }
};

// Throws protozero::exception where the bytes are no message. Tables that are too large are read to their limit: full()
// says so, and so does a sample type more than kMaxPprofSampleTypes.
PprofFile ReadPprofTables(absl::string_view bytes);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_PROFILE_PPROF_TABLES_H_
