// Counts the ways in which ready-to-run code was named.
#ifndef CLRSAMPLER_CLR_R2R_COUNTERS_H_
#define CLRSAMPLER_CLR_R2R_COUNTERS_H_

#include <cstdint>

namespace clrsampler {

struct R2rMethodCounters {
  // Images and maps, each once.
  uint64_t images = 0;          // whose tables were read
  uint64_t bundles = 0;         // single-file hosts
  uint64_t images_refused = 0;  // R2R images that are newer than we know or whose tables contradict themselves
  uint64_t images_damaged = 0;  // files that shrank while they were read
  uint64_t maps_used = 0;
  uint64_t maps_fetched = 0;        // of these, from a symbol server
  uint64_t maps_rejected = 0;       // an r2rmap that does not parse or belongs to another image
  uint64_t missing_assemblies = 0;  // components and references that names need and that were not found
  // Methods, each once per image.
  uint64_t methods_named = 0;
  uint64_t methods_by_token = 0;          // unnamed: only module and token are known, an assembly is missing
  uint64_t methods_with_type_tokens = 0;  // named, but a generic argument stands as a token
  uint64_t methods_failed = 0;            // unnamed: the tables could not be followed
  uint64_t map_disagreements = 0;         // the r2rmap says another name than the image
  // Questions.
  uint64_t unreadable_files = 0;   // the mapped file could not be opened
  uint64_t outside_functions = 0;  // in code of an image, but in no runtime function
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_R2R_COUNTERS_H_
