#include "formats/elf/code_areas.h"

#include <elf.h>

#include <algorithm>

#include "absl/status/status.h"

namespace clrsampler {

absl::StatusOr<CodeAreas> CodeAreas::Of(const ElfImage& image, uint64_t most_bytes) {
  CodeAreas code;
  std::vector<CodeArea>& areas = code.areas_;
  for (const ElfSection& section : image.sections()) {
    if ((section.flags & SHF_EXECINSTR) == 0 || (section.flags & SHF_ALLOC) == 0) continue;
    const auto bytes = image.SectionBytes(section);
    if (!bytes || bytes->empty() || bytes->size() > UINT64_MAX - section.address.value) continue;
    if (bytes->size() > most_bytes - code.bytes_) return absl::ResourceExhaustedError("more code than is followed");
    areas.push_back({section.address.value, *bytes, 0});
    code.bytes_ += bytes->size();
  }
  if (areas.empty()) return absl::NotFoundError("it has no code");
  std::sort(areas.begin(), areas.end(), [](const CodeArea& a, const CodeArea& b) { return a.address < b.address; });
  for (size_t i = 1; i < areas.size(); ++i) {
    if (areas[i].address - areas[i - 1].address < areas[i - 1].bytes.size()) {
      return absl::DataLossError("two sections of code have the same addresses");
    }
    areas[i].first = areas[i - 1].end();
  }
  return code;
}

CodeIndex CodeAreas::At(uint64_t address) const {
  const auto above = std::upper_bound(areas_.begin(), areas_.end(), address,
                                      [](uint64_t value, const CodeArea& area) { return value < area.address; });
  if (above == areas_.begin()) return kNoCode;
  const CodeArea& area = *(above - 1);
  const uint64_t inside = address - area.address;
  return inside < area.bytes.size() ? area.first + static_cast<CodeIndex>(inside) : kNoCode;
}

const CodeArea& CodeAreas::AreaOf(CodeIndex at) const {
  const auto above = std::upper_bound(areas_.begin(), areas_.end(), at,
                                      [](CodeIndex value, const CodeArea& area) { return value < area.first; });
  return *(above - 1);
}

CodeIndex BehindPadding(const CodeArea& area, CodeIndex at, CodeIndex end) {
  for (const CodeIndex begin = at; at < end && at - begin <= kMaxPaddingBytes;) {
    if (!area.Contains(at)) return kNoCode;
    const size_t bytes = X64PaddingBytes(area.bytes.subspan(at - area.first));
    if (bytes == 0) return at;
    at += static_cast<CodeIndex>(bytes);
  }
  return at == end ? at : kNoCode;
}

}  // namespace clrsampler
