// A fixture's image as the runtime lays it out in memory: every section at its RVA, the header in front.
#ifndef CLRSAMPLER_TESTS_UNIT_FORMATS_PE_LOADED_FIXTURE_H_
#define CLRSAMPLER_TESTS_UNIT_FORMATS_PE_LOADED_FIXTURE_H_

#include <algorithm>
#include <cstring>
#include <string>

#include "formats/byte_reader.h"
#include "formats/pe/loaded_image.h"
#include "formats/pe/pe_image.h"

namespace clrsampler {

inline std::string LaidOut(const std::string& file) {
  const auto pe = PeImage::Parse(AsBytes(file));
  std::string memory(*LoadedImageBytes(AsBytes(file)), '\0');
  memory.replace(0, 512, file, 0, 512);
  for (const PeSection& section : pe->sections()) {
    memory.resize(std::max<size_t>(memory.size(), section.rva + section.file_bytes));
    memory.replace(section.rva, section.file_bytes, file, section.file_offset, section.file_bytes);
  }
  return memory;
}

inline ImageReader ReaderOf(const std::string& memory) {
  return [&memory](uint32_t rva, std::span<std::byte> into) {
    const auto bytes = SliceAt(AsBytes(memory), rva, into.size());
    if (bytes) std::memcpy(into.data(), bytes->data(), into.size());
    return bytes.has_value();
  };
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_TESTS_UNIT_FORMATS_PE_LOADED_FIXTURE_H_
