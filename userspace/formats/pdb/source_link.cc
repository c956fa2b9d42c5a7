#include "formats/pdb/source_link.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace clrsampler {
namespace {

// RFC 3986: the characters that need no encoding in a path.
bool IsPlainInUrl(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
         absl::string_view("-._~/").find(c) != absl::string_view::npos;
}

std::string UrlPath(absl::string_view rest) {
  constexpr absl::string_view kDigits = "0123456789ABCDEF";
  std::string path;
  for (const char c : rest) {
    if (c == '\\') {
      path += '/';
    } else if (IsPlainInUrl(c)) {
      path += c;
    } else {
      const uint8_t byte = static_cast<uint8_t>(c);
      path += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return path;
}

bool IsWebUrl(absl::string_view url) {
  const bool scheme = absl::StartsWithIgnoreCase(url, "https://") || absl::StartsWithIgnoreCase(url, "http://");
  return scheme &&
         std::all_of(url.begin(), url.end(), [](char c) { return absl::ascii_isgraph(static_cast<unsigned char>(c)); });
}

}  // namespace

// Takes the parser's events (nlohmann's SAX interface). It keeps nothing but the depth of a deeply nested text.
class SourceLinkEvents {
 public:
  explicit SourceLinkEvents(std::vector<SourceLinkMap::Entry>& entries) : entries_(entries) {}

  bool has_documents() const { return has_documents_; }
  bool too_many() const { return too_many_; }

  bool null() { return true; }
  bool boolean(bool) { return true; }
  bool number_integer(int64_t) { return true; }
  bool number_unsigned(uint64_t) { return true; }
  bool number_float(double, const std::string&) { return true; }
  bool binary(nlohmann::json::binary_t&) { return true; }
  bool string(std::string& value) {
    if (depth_ != 2 || !in_documents_) return true;
    too_many_ = entries_.size() == SourceLinkMap::kMaxEntries;
    if (std::optional<SourceLinkMap::Entry> entry = SourceLinkMap::EntryOf(key_, value); entry && !too_many_) {
      entries_.push_back(*std::move(entry));
    }
    return !too_many_;
  }
  bool key(std::string& key) {
    key_ = std::move(key);
    return true;
  }
  bool start_object(size_t) {
    if (depth_ == 1 && root_is_object_ && key_ == "documents") in_documents_ = has_documents_ = true;
    if (depth_ == 0) root_is_object_ = true;
    ++depth_;
    return true;
  }
  bool end_object() { return Leave(); }
  bool start_array(size_t) {
    ++depth_;
    return true;
  }
  bool end_array() { return Leave(); }
  bool parse_error(size_t, const std::string&, const nlohmann::json::exception&) { return false; }

 private:
  bool Leave() {
    if (--depth_ == 1) in_documents_ = false;
    return true;
  }

  std::vector<SourceLinkMap::Entry>& entries_;
  std::string key_;
  size_t depth_ = 0;  // of objects and arrays that are open
  bool root_is_object_ = false;
  bool in_documents_ = false;
  bool has_documents_ = false;
  bool too_many_ = false;
};

absl::StatusOr<SourceLinkMap> SourceLinkMap::Parse(absl::string_view json) {
  if (json.size() > kMaxTextBytes) {
    return absl::ResourceExhaustedError(absl::StrCat("a source link text of ", json.size(), " bytes"));
  }
  SourceLinkMap map;
  SourceLinkEvents events(map.entries_);
  const bool whole = nlohmann::json::sax_parse(json.begin(), json.end(), &events);
  if (events.too_many()) {
    return absl::ResourceExhaustedError(absl::StrCat("a source link text with more than ", kMaxEntries, " entries"));
  }
  if (!whole || !events.has_documents()) return absl::DataLossError("the source link text names no documents");
  std::stable_sort(map.entries_.begin(), map.entries_.end(), [](const Entry& a, const Entry& b) {
    if (a.name.size() != b.name.size()) return a.name.size() > b.name.size();
    return !a.prefix && b.prefix;
  });
  return map;
}

std::optional<SourceLinkMap::Entry> SourceLinkMap::EntryOf(absl::string_view name, absl::string_view url) {
  if (name.empty() || !IsWebUrl(url)) return std::nullopt;
  Entry entry;
  const size_t name_star = name.find('*'), url_star = url.find('*');
  entry.prefix = name_star != absl::string_view::npos;
  if (entry.prefix != (url_star != absl::string_view::npos)) return std::nullopt;
  if (entry.prefix && (name_star != name.size() - 1 || url.rfind('*') != url_star)) return std::nullopt;
  entry.name = std::string(name.substr(0, name_star));
  entry.url_before = std::string(url.substr(0, url_star));
  if (entry.prefix) entry.url_behind = std::string(url.substr(url_star + 1));
  return entry;
}

std::optional<std::string> SourceLinkMap::UrlOf(absl::string_view document) const {
  for (const Entry& entry : entries_) {
    if (!absl::StartsWithIgnoreCase(document, entry.name)) continue;
    if (!entry.prefix && document.size() != entry.name.size()) continue;
    return absl::StrCat(entry.url_before, UrlPath(document.substr(entry.name.size())), entry.url_behind);
  }
  return std::nullopt;
}

}  // namespace clrsampler
