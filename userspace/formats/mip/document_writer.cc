#include <memory>

#include "absl/strings/escaping.h"
#include "formats/mip/document_events.h"
#include "formats/names/utf8.h"

namespace clrsampler {
namespace {

using namespace document_keys;

bool IsUtf8(absl::string_view text) {
  while (!text.empty()) {
    const size_t bytes = DecodeUtf8(text).bytes;
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

void WriteHeader(const MipProfile& profile, DocumentWriter& writer) {
  writer.Key(kHeader);
  writer.BeginMap();
  writer.Key(kFileType);
  writer.BeginList(true);
  writer.Text(kMipFile);
  writer.EndList();
  writer.Key(kProfileType);
  writer.BeginList(true);
  for (const KindWord& kind : kKindWords) {
    if ((profile.kinds & kind.bit) != 0) writer.Text(kind.word);
  }
  writer.EndList();
  writer.Key(kModuleHash);
  writer.Hex(profile.module_hash);
  writer.EndMap();
}

void WriteBlock(uint64_t offset, bool covered, DocumentWriter& writer) {
  writer.BeginMap();
  writer.Key(kOffset);
  writer.Hex(offset);
  writer.Key(kCovered);
  writer.Bool(covered);
  writer.EndMap();
}

void WriteFunction(const MipProfile& profile, const MipFunction& function, const MipDocumentOptions& options,
                   DocumentWriter& writer) {
  const auto hex = [&](absl::string_view key, uint64_t value) {
    writer.Key(key);
    writer.Hex(value);
  };
  const auto number = [&](absl::string_view key, uint64_t value) {
    writer.Key(key);
    writer.Number(value);
  };
  writer.BeginMap();
  const absl::string_view name = profile.NameOf(function);
  const bool is_text = IsUtf8(name);
  writer.Key(is_text ? kName : kNameBase64);
  writer.Text(is_text ? std::string(name) : absl::Base64Escape(name));
  hex(kSignature, function.signature);
  hex(kRawOffset, function.raw_offset);
  hex(kStartOffset, static_cast<uint64_t>(function.start_offset));
  hex(kSize, function.size);
  hex(kCfgSignature, function.cfg_signature);
  number(kMergeCount, function.merge_count);
  number(kCallCount, function.call_count);
  number(kTimestampSum, function.timestamp_sum);
  writer.Key(kBlocks);
  writer.BeginList(false);
  WriteBlock(0, function.entry_ran(), writer);
  const std::span<const uint32_t> offsets = profile.OffsetsOf(function);
  const std::span<const uint8_t> covered = profile.CoveredOf(function);
  for (size_t i = 0; i < offsets.size(); ++i) WriteBlock(offsets[i], covered[i] != 0, writer);
  writer.EndList();
  writer.Key(kEdges);
  writer.BeginList(true);
  writer.EndList();
  if (options.source) {
    if (const std::string source = options.source(function); !source.empty()) {
      writer.Key(kSource);
      writer.Text(source);
    }
  }
  writer.EndMap();
}

}  // namespace

absl::Status WriteDocument(const MipProfile& profile, const MipDocumentOptions& options, DocumentWriter& writer) {
  writer.BeginMap();
  WriteHeader(profile, writer);
  writer.Key(kProfiles);
  writer.BeginList(false);
  for (const MipFunction& function : profile.functions) {
    if (writer.failed()) break;
    if (!options.keep || options.keep(function)) WriteFunction(profile, function, options, writer);
  }
  writer.EndList();
  writer.EndMap();
  return writer.Finish();
}

absl::Status WriteMipYaml(const MipProfile& profile, const MipDocumentOptions& options, const MipSink& sink) {
  return WriteDocument(profile, options, *MakeYamlWriter(sink));
}

absl::Status WriteMipJson(const MipProfile& profile, const MipDocumentOptions& options, const MipSink& sink) {
  return WriteDocument(profile, options, *MakeJsonWriter(sink));
}

}  // namespace clrsampler
