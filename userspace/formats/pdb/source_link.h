// SourceLink: where on the web the source files of a PDB are.
//
// Format: dotnet/designs accepted/2020/diagnostics/source-link.md. It is JSON, `{"documents": {"/_/*":
// "https://host/commit/*"}}`. A name stands for one document, or with a `*` at its end for all that begin so; the rest
// of their name replaces the `*` of the URL. Names are compared without regard to case (of ASCII).
//
// The text is foreign: only the maker of the PDB vouches for a URL.
#ifndef CLRSAMPLER_FORMATS_PDB_SOURCE_LINK_H_
#define CLRSAMPLER_FORMATS_PDB_SOURCE_LINK_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace clrsampler {

class SourceLinkMap {
 public:
  static constexpr size_t kMaxTextBytes = 1 << 20;
  static constexpr size_t kMaxEntries = 10'000;

  // Entries that break the rules are left out, and so are URLs of other schemes than http and https. DataLoss: not
  // JSON, no "documents". ResourceExhausted: more than kMaxTextBytes or kMaxEntries.
  static absl::StatusOr<SourceLinkMap> Parse(absl::string_view json);

  // The URL of a document (PdbDocument::name): that of its own name, else that of the longest name that it begins with.
  // The text in the place of a `*` has slashes for backslashes, and is percent-encoded. nullopt: no entry is for it.
  std::optional<std::string> UrlOf(absl::string_view document) const;

  size_t size() const { return entries_.size(); }

 private:
  friend class SourceLinkEvents;

  struct Entry {
    std::string name;  // without the `*`
    bool prefix = false;
    std::string url_before, url_behind;  // of its `*`; all in front if there is none
  };

  static std::optional<Entry> EntryOf(absl::string_view name, absl::string_view url);

  std::vector<Entry> entries_;  // the one that decides first in front
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_PDB_SOURCE_LINK_H_
