#include "formats/profile/profile_reader.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "formats/profile/folded_reader.h"
#include "formats/profile/gzip.h"
#include "formats/profile/pprof_reader.h"
#include "formats/profile/profile_json_reader.h"
#include "formats/profile/speedscope_reader.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// Whether these are bytes that no text has: a protobuf message has some among its first few.
bool IsBinary(absl::string_view bytes) {
  const absl::string_view head = bytes.substr(0, 1024);
  return std::any_of(head.begin(), head.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\r' && c != '\t';
  });
}

// The first key decides, as names may hold any words. Other programs may have put our keys in another order.
absl::StatusOr<ProfileModel> ReadJson(absl::string_view text) {
  if (absl::StartsWith(absl::StripLeadingAsciiWhitespace(text.substr(1)), "\"format\"")) return ReadProfileJson(text);
  if (absl::StrContains(text, kSpeedscopeSchema)) return ReadSpeedscope(text);
  if (absl::StrContains(text, kProfileJsonFormat)) return ReadProfileJson(text);
  return WithHint(absl::InvalidArgumentError("JSON of a kind that clrsampler does not read"),
                  "it reads its own .json and speedscope's; other tools can write folded stacks");
}

absl::StatusOr<ProfileModel> ReadUnpacked(absl::string_view bytes) {
  if (IsBinary(bytes)) return ReadPprof(bytes);
  const absl::string_view text = absl::StripLeadingAsciiWhitespace(bytes);
  absl::StatusOr<ProfileModel> other = absl::UnknownError("");
  if (absl::StartsWith(text, "{")) {
    other = ReadJson(text);
  } else if (absl::StartsWith(text, "<")) {
    other = WithHint(absl::InvalidArgumentError("a page or picture cannot be read back"),
                     "record -o may be given several times: keep a .json or .pb.gz beside the .html");
  } else {
    return ReadFolded(bytes);
  }
  if (other.ok()) return other;
  // A process may be called anything.
  absl::StatusOr<ProfileModel> folded = ReadFolded(bytes);
  return folded.ok() ? std::move(folded) : std::move(other);
}

}  // namespace

absl::StatusOr<ProfileModel> ReadProfile(absl::string_view bytes) {
  if (bytes.size() > kMaxProfileBytes) {
    return WithHint(absl::ResourceExhaustedError(absl::StrCat("more than ", kMaxProfileBytes >> 20, " MiB")),
                    "no profile is that large; record for a shorter time, or at a lower --frequency");
  }
  if (!IsGzip(bytes)) return ReadUnpacked(bytes);
  ASSIGN_OR_RETURN(const std::string unpacked, Gunzip(bytes, kMaxProfileBytes));
  return ReadUnpacked(unpacked);
}

}  // namespace clrsampler
