// il_maps PID FORMAT: the IL maps of compiled methods of a process, read from its memory. FORMAT is 8, 10 or 11.
//
// Takes lines of an address where a method's code begins and the bytes of its code, in hexadecimal. Prints for each:
//   ADDRESS BYTES HEAD BOUNDS NATIVE:IL:SOURCES...
// HEAD and BOUNDS are what was read, in hexadecimal, `-` for nothing; numbers of the entries are decimal. For a method
// without debug information: ADDRESS BYTES none. One that can't be read: ADDRESS BYTES error, and why.
//
// With `callers` behind FORMAT each line has a third number, the offset of a return address in the code. Then
// NATIVE:IL:SOURCES... is the IL offset of the call, decimal, and where it is from, or `-`.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"
#include "formats/runtime/il_map_decoder.h"
#include "process/target_memory.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr uint64_t kPage = 4096;

class Target {
 public:
  explicit Target(uint32_t pid) : pid_(pid) {}

  absl::StatusOr<std::string> Read(uint64_t address, size_t bytes) const {
    std::string text(bytes, '\0');
    if (ReadTargetMemory(pid_, address, std::as_writable_bytes(std::span(text)))) return text;
    return absl::NotFoundError(absl::StrCat("no memory at ", absl::Hex(address)));
  }

  // Fewer bytes where the memory ends.
  absl::StatusOr<std::string> ReadHead(uint64_t address) const {
    absl::StatusOr<std::string> whole = Read(address, kDebugInfoHeadBytes);
    return whole.ok() ? whole : Read(address, std::min<uint64_t>(kDebugInfoHeadBytes, kPage - address % kPage));
  }

  absl::StatusOr<uint64_t> Pointer(uint64_t address) const {
    const absl::StatusOr<std::string> text = Read(address, sizeof(uint64_t));
    RETURN_IF_ERROR(text.status());
    return LoadAt<uint64_t>(AsBytes(*text), 0).value_or(0);
  }

 private:
  uint32_t pid_;
};

std::string Hexadecimal(absl::string_view bytes) { return bytes.empty() ? "-" : absl::BytesToHexString(bytes); }

std::string PlaceText(const std::optional<IlPlace>& place) {
  if (!place) return "-";
  const char* kind = place->kind == IlPlaceKind::kInstruction ? "instruction"
                     : place->kind == IlPlaceKind::kProlog    ? "prolog"
                                                              : "epilog";
  return absl::StrCat(place->il_offset, " ", kind);
}

// A method, and what is asked about it.
struct Question {
  uint64_t start = 0;
  uint32_t code_bytes = 0;
  std::optional<uint32_t> return_offset;
};

// The text that is printed of the debug information at `info`. Its heads are joined as they follow each other.
absl::StatusOr<std::string> MapAt(const Target& target, DebugInfoFormat format, uint64_t info,
                                  const Question& question) {
  DebugInfoPlace place;
  absl::StatusOr<DebugInfoHeader> header;
  do {
    const absl::StatusOr<std::string> head = target.ReadHead(info + place.offset);
    RETURN_IF_ERROR(head.status());
    header = ReadDebugInfoHeader(format, AsBytes(*head), place);
    RETURN_IF_ERROR(header.status());
    place = header->needs_more_at.value_or(place);
  } while (header->needs_more_at);
  const absl::StatusOr<std::string> before = target.Read(info, header->bounds_offset);
  RETURN_IF_ERROR(before.status());
  const absl::StatusOr<std::string> bounds = target.Read(info + header->bounds_offset, header->bounds_bytes);
  RETURN_IF_ERROR(bounds.status());
  const absl::StatusOr<IlMap> map = DecodeBounds(format, AsBytes(*bounds), question.code_bytes);
  RETURN_IF_ERROR(Annotate(map.status(), Hexadecimal(*bounds)));
  std::string text = absl::StrCat(Hexadecimal(*before), " ", Hexadecimal(*bounds));
  if (question.return_offset) {
    return absl::StrCat(text, " ", PlaceText(map->Lookup(*question.return_offset, FramePlace::kCaller)));
  }
  for (const IlMapEntry& entry : map->entries()) {
    absl::StrAppend(&text, " ", uint32_t{entry.native_offset}, ":", entry.il_offset, ":", uint32_t{entry.sources});
  }
  return text;
}

// Before the code lies a pointer to the runtime's header of it, which begins with that to the debug information.
absl::StatusOr<std::string> MapOf(const Target& target, DebugInfoFormat format, const Question& question) {
  const absl::StatusOr<uint64_t> header = target.Pointer(question.start - sizeof(uint64_t));
  RETURN_IF_ERROR(header.status());
  const absl::StatusOr<uint64_t> info = target.Pointer(*header);
  RETURN_IF_ERROR(info.status());
  if (*info == 0) return std::string("none");
  return MapAt(target, format, *info, question);
}

int Main(int argc, char** argv) {
  const std::string name = argc >= 3 ? argv[2] : "";
  const bool callers = argc == 4 && absl::string_view(argv[3]) == "callers";
  if ((name != "8" && name != "10" && name != "11") || (argc != 3 && !callers)) {
    std::fputs("usage: il_maps PID 8|10|11 [callers]\n", stderr);
    return 2;
  }
  const DebugInfoFormat format = name == "8"    ? DebugInfoFormat::kNet8
                                 : name == "10" ? DebugInfoFormat::kNet10
                                                : DebugInfoFormat::kNet11;
  const Target target(static_cast<uint32_t>(std::strtoul(argv[1], nullptr, 10)));
  Question question;
  while (std::cin >> std::hex >> question.start >> question.code_bytes) {
    if (callers && !(std::cin >> question.return_offset.emplace())) break;
    const absl::StatusOr<std::string> map = MapOf(target, format, question);
    std::printf("%llx %x %s\n", static_cast<unsigned long long>(question.start), question.code_bytes,
                map.ok() ? map->c_str() : absl::StrCat("error ", map.status().message()).c_str());
  }
  return 0;
}

}  // namespace
}  // namespace clrsampler

int main(int argc, char** argv) { return clrsampler::Main(argc, argv); }
