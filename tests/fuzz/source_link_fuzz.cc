// A SourceLink text, and behind its first NUL the name of a document: a URL is one of the web, and holds nothing that
// could end it early or begin another line.
#include <cstddef>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "formats/pdb/source_link.h"

namespace {

void Require(bool condition) {
  if (!condition) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = input.find('\0');
  const absl::string_view json = input.substr(0, end);
  const absl::string_view document = end == absl::string_view::npos ? "/_/src/a.cs" : input.substr(end + 1);
  const auto map = clrsampler::SourceLinkMap::Parse(json);
  if (!map.ok()) return 0;
  Require(map->size() <= clrsampler::SourceLinkMap::kMaxEntries);
  const auto url = map->UrlOf(document);
  Require(url == map->UrlOf(document));
  if (!url) return 0;
  Require(map->size() > 0);
  Require(absl::StartsWithIgnoreCase(*url, "https://") || absl::StartsWithIgnoreCase(*url, "http://"));
  for (const char c : *url) Require(absl::ascii_isgraph(static_cast<unsigned char>(c)));
  Require(url->size() <= json.size() + 3 * document.size());
  return 0;
}
