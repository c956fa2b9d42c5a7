#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "formats/mip/document_events.h"
#include "status/status.h"

namespace clrsampler {
namespace {

using namespace document_keys;

constexpr uint64_t kMax32 = std::numeric_limits<uint32_t>::max(), kMax64 = std::numeric_limits<uint64_t>::max();

absl::Status NotOurs(absl::string_view why) {
  return WithHint(absl::DataLossError(absl::StrCat("not a profile: ", why)),
                  "clrsampler mip to-yaml shows what one looks like; docs/mip.md has the keys");
}

// "0x1F" or decimal.
std::optional<uint64_t> ToNumber(absl::string_view text) {
  if (text.empty() || !absl::ascii_isdigit(static_cast<unsigned char>(text[0]))) return std::nullopt;
  uint64_t value = 0;
  const bool hex = text.size() > 2 && (text.substr(0, 2) == "0x" || text.substr(0, 2) == "0X");
  if (hex ? !absl::SimpleHexAtoi(text, &value) : !absl::SimpleAtoi(text, &value)) return std::nullopt;
  return value;
}

std::optional<bool> ToBool(absl::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return std::nullopt;
}

}  // namespace

std::string DocumentReader::Where() const {
  if (places_.size() < 3) return key_.empty() ? "" : absl::StrCat(" in ", key_);
  return absl::StrCat(" in ", key_, " of function ", builder_.size(),
                      function_.name.empty() ? "" : absl::StrCat(" (", absl::Utf8SafeCEscape(function_.name), ")"));
}

absl::Status DocumentReader::Unexpected(absl::string_view what) const {
  return NotOurs(absl::StrCat("an unexpected ", what, Where()));
}

absl::Status DocumentReader::NotA(absl::string_view what, absl::string_view text) const {
  return NotOurs(absl::StrCat("\"", absl::Utf8SafeCEscape(text.substr(0, 100)), "\"", Where(), " is no ", what));
}

absl::Status DocumentReader::Number(absl::string_view text, uint64_t max, uint64_t& out) const {
  const std::optional<uint64_t> value = ToNumber(text);
  if (!value || *value > max) return NotA(absl::StrCat("number from 0 to ", max), text);
  out = *value;
  return absl::OkStatus();
}

absl::Status DocumentReader::Enter(Place place) {
  places_.push_back(place);
  return absl::OkStatus();
}

absl::Status DocumentReader::BeginMap() {
  if (places_.empty()) {
    if (began_) return NotOurs("more than one document");
    began_ = true;
    return Enter(Place::kTop);
  }
  switch (places_.back()) {
    case Place::kTop:
      return key_ == kHeader ? Enter(Place::kHeader) : Unexpected("map");
    case Place::kProfiles:
      function_ = Function();
      return Enter(Place::kProfile);
    case Place::kBlocks:
      block_offset_ = 0;
      block_covered_ = false;
      return Enter(Place::kBlock);
    case Place::kEdges:
      return Unexpected("call edge, which the format reserves");
    default:
      return Unexpected("map");
  }
}

absl::Status DocumentReader::BeginList() {
  if (!places_.empty()) {
    if (places_.back() == Place::kTop && key_ == kProfiles) return Enter(Place::kProfiles);
    if (places_.back() == Place::kHeader && key_ == kFileType) return Enter(Place::kFileTypes);
    if (places_.back() == Place::kHeader && key_ == kProfileType) return Enter(Place::kKinds);
    if (places_.back() == Place::kProfile && key_ == kEdges) return Enter(Place::kEdges);
    if (places_.back() == Place::kProfile && key_ == kBlocks) {
      function_.block_offsets.clear();
      function_.block_covered.clear();
      return Enter(Place::kBlocks);
    }
  }
  return Unexpected("list");
}

absl::Status DocumentReader::EndList() {
  places_.pop_back();
  return absl::OkStatus();
}

absl::Status DocumentReader::EndMap() {
  const Place place = places_.back();
  places_.pop_back();
  if (place == Place::kProfile) return EndProfile();
  if (place == Place::kBlock) {
    function_.block_offsets.push_back(static_cast<uint32_t>(block_offset_));
    function_.block_covered.push_back(block_covered_);
  }
  return absl::OkStatus();
}

absl::Status DocumentReader::Key(absl::string_view key) {
  key_ = std::string(key);
  return absl::OkStatus();
}

absl::Status DocumentReader::Scalar(absl::string_view text) {
  if (places_.empty()) return Unexpected("value");
  switch (places_.back()) {
    case Place::kFileTypes:
      if (text != kMipFile) return NotA("type of a profile, which is .mip", text);
      is_profile_ = true;
      return absl::OkStatus();
    case Place::kKinds:
      for (const KindWord& kind : kKindWords) {
        if (text == kind.word) {
          kinds_ |= kind.bit;
          return absl::OkStatus();
        }
      }
      return NotA("kind of profile", text);
    case Place::kHeader:
      return HeaderScalar(text);
    case Place::kProfile:
      return ProfileScalar(text);
    case Place::kBlock:
      return BlockScalar(text);
    default:
      return Unexpected("value");
  }
}

absl::Status DocumentReader::HeaderScalar(absl::string_view text) {
  if (key_ != kModuleHash) return Unexpected("value");
  has_hash_ = true;
  return Number(text, kMax32, module_hash_);
}

absl::Status DocumentReader::ProfileScalar(absl::string_view text) {
  struct NumberField {
    absl::string_view key;
    uint64_t max;
    uint64_t Function::*value;
  };
  static constexpr NumberField kNumbers[] = {
      {kRawOffset, kMax64, &Function::raw_offset},
      {kStartOffset, kMax64, &Function::start_offset},
      {kSize, kMax32, &Function::size},
      {kCfgSignature, kMax32, &Function::cfg_signature},
      {kMergeCount, kMax32, &Function::merge_count},
      {kCallCount, kMax64, &Function::call_count},
      {kTimestampSum, kMax64, &Function::timestamp_sum},
  };
  for (const NumberField& field : kNumbers) {
    if (key_ == field.key) return Number(text, field.max, function_.*field.value);
  }
  if (key_ == kSignature) return Number(text, kMax64, function_.signature.emplace());
  if (key_ == kSource) return absl::OkStatus();  // of the binary, not of the profile
  if (key_ == kName) {
    function_.name = std::string(text);
    return absl::OkStatus();
  }
  if (key_ == kNameBase64) {
    return absl::Base64Unescape(text, &function_.name) ? absl::OkStatus() : NotA("base64 text", text);
  }
  return Unexpected("key");
}

absl::Status DocumentReader::BlockScalar(absl::string_view text) {
  if (key_ == kOffset) return Number(text, kMax32, block_offset_);
  if (key_ != kCovered) return Unexpected("key");
  const std::optional<bool> covered = ToBool(text);
  if (!covered) return NotA("truth value", text);
  block_covered_ = *covered;
  return absl::OkStatus();
}

absl::Status DocumentReader::EndProfile() {
  NewMipFunction added{.name = function_.name,
                       .raw_offset = function_.raw_offset,
                       .start_offset = static_cast<int64_t>(function_.start_offset),
                       .size = static_cast<uint32_t>(function_.size),
                       .cfg_signature = static_cast<uint32_t>(function_.cfg_signature),
                       .merge_count = static_cast<uint32_t>(function_.merge_count),
                       .call_count = function_.call_count,
                       .timestamp_sum = function_.timestamp_sum,
                       .signature = function_.signature};
  const std::string where =
      absl::StrCat(" of function ", builder_.size(), " (", absl::Utf8SafeCEscape(function_.name), ")");
  if (!function_.name.empty() && function_.signature && *function_.signature != MipFunctionSignature(function_.name)) {
    return WithHint(
        absl::DataLossError(absl::StrFormat("the signature %#x%s is not that of its name, %#x", *function_.signature,
                                            where, MipFunctionSignature(function_.name))),
        "leave the signature out: it is computed from the name");
  }
  if (!function_.block_offsets.empty()) {
    // The first block is the entry, which a .mip does not hold: it ran if the function did.
    const bool ran = added.merge_count > 0 || added.call_count > 0;
    if (function_.block_offsets[0] != 0 || (function_.block_covered[0] != 0) != ran) {
      return NotOurs(
          absl::StrCat("the first block", where,
                       " is not its entry: at offset 0, and covered if and only if the function has counts"));
    }
    added.block_offsets = std::span(function_.block_offsets).subspan(1);
    added.block_covered = std::span(function_.block_covered).subspan(1);
  }
  return Annotate(builder_.Add(added), absl::StrCat("the name", where));
}

absl::StatusOr<MipProfile> DocumentReader::Finish() && {
  if (!began_ || !places_.empty()) return NotOurs("the text ends before the document does");
  if (!is_profile_ || !has_hash_) return NotOurs("its Header has no File Type [.mip] or no Module Hash");
  RETURN_IF_ERROR(CheckMipKinds(static_cast<uint32_t>(kinds_), "Profile Type"));
  MipProfile profile = std::move(builder_).Build();
  profile.kinds = static_cast<uint32_t>(kinds_);
  profile.module_hash = static_cast<uint32_t>(module_hash_);
  return profile;
}

absl::StatusOr<MipProfile> ReadMipDocument(absl::string_view text) {
  DocumentReader reader;
  const absl::string_view begin = absl::StripLeadingAsciiWhitespace(text);
  const bool json = !begin.empty() && begin[0] == '{';
  RETURN_IF_ERROR(json ? ReadJsonText(text, reader) : ReadYamlText(text, reader));
  return std::move(reader).Finish();
}

}  // namespace clrsampler
