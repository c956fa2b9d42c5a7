// The elements that YAML and JSON texts have in common: maps, lists and scalars, one after the other. The document's
// keys and their order are known to document_writer.cc and document_reader.cc only, the syntax to yaml_text.cc and
// json_text.cc only.
#ifndef CLRSAMPLER_FORMATS_MIP_DOCUMENT_EVENTS_H_
#define CLRSAMPLER_FORMATS_MIP_DOCUMENT_EVENTS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "formats/mip/mip_document.h"

namespace clrsampler {

// Takes a document that is written. The first error of the sink ends the writing; Finish gives it.
class DocumentWriter {
 public:
  virtual ~DocumentWriter() = default;
  virtual void BeginMap() = 0;
  virtual void EndMap() = 0;
  virtual void BeginList(bool one_line) = 0;
  virtual void EndList() = 0;
  virtual void Key(absl::string_view key) = 0;
  virtual void Text(absl::string_view text) = 0;  // UTF-8
  virtual void Hex(uint64_t value) = 0;
  virtual void Number(uint64_t value) = 0;
  virtual void Bool(bool value) = 0;
  virtual bool failed() const = 0;
  virtual absl::Status Finish() = 0;
};
std::unique_ptr<DocumentWriter> MakeYamlWriter(const MipSink& sink);  // borrows the sink
std::unique_ptr<DocumentWriter> MakeJsonWriter(const MipSink& sink);
absl::Status WriteDocument(const MipProfile& profile, const MipDocumentOptions& options, DocumentWriter& writer);

// Takes a document that is read and makes the profile of it. After the first error nothing more may come.
class DocumentReader {
 public:
  absl::Status BeginMap();
  absl::Status EndMap();
  absl::Status BeginList();
  absl::Status EndList();
  absl::Status Key(absl::string_view key);
  absl::Status Scalar(absl::string_view text);

  absl::StatusOr<MipProfile> Finish() &&;

 private:
  enum class Place : uint8_t { kTop, kHeader, kFileTypes, kKinds, kProfiles, kProfile, kBlocks, kBlock, kEdges };

  absl::Status Unexpected(absl::string_view what) const;
  absl::Status NotA(absl::string_view what, absl::string_view text) const;
  absl::Status Number(absl::string_view text, uint64_t max, uint64_t& out) const;
  absl::Status Enter(Place place);
  absl::Status HeaderScalar(absl::string_view text);
  absl::Status ProfileScalar(absl::string_view text);
  absl::Status BlockScalar(absl::string_view text);
  absl::Status EndProfile();
  std::string Where() const;

  std::vector<Place> places_;
  std::string key_;
  bool began_ = false, has_hash_ = false, is_profile_ = false;
  uint64_t kinds_ = 0, module_hash_ = 0;
  MipProfileBuilder builder_{0, 0};

  // The function that is read.
  struct Function {
    std::string name;
    std::optional<uint64_t> signature;
    uint64_t raw_offset = 0, start_offset = 0, size = 0, cfg_signature = 0, merge_count = 0, call_count = 0,
             timestamp_sum = 0;
    std::vector<uint32_t> block_offsets;  // the entry block, too
    std::vector<uint8_t> block_covered;
  };
  Function function_;
  uint64_t block_offset_ = 0;
  bool block_covered_ = false;
};

absl::Status ReadYamlText(absl::string_view text, DocumentReader& reader);
absl::Status ReadJsonText(absl::string_view text, DocumentReader& reader);

// The keys.
namespace document_keys {
inline constexpr absl::string_view kHeader = "Header", kProfiles = "Profiles";
inline constexpr absl::string_view kFileType = "File Type", kProfileType = "Profile Type", kModuleHash = "Module Hash";
inline constexpr absl::string_view kName = "Function Name", kNameBase64 = "Function Name Base64",
                                   kSignature = "Function Signature", kRawOffset = "Raw Profile Data Address",
                                   kStartOffset = "Encoded Function Address", kSize = "Function Size",
                                   kCfgSignature = "Control Flow Graph Signature", kMergeCount = "Raw Profile Count",
                                   kCallCount = "Function Call Count", kTimestampSum = "Function Order Sum",
                                   kBlocks = "Basic Block Profiles", kEdges = "Call Edges", kSource = "Source Info";
inline constexpr absl::string_view kOffset = "Offset", kCovered = "Covered";
inline constexpr absl::string_view kMipFile = ".mip";
struct KindWord {
  uint32_t bit;
  absl::string_view word;
};
inline constexpr KindWord kKindWords[] = {{kMipFunctionCoverage, "Function Coverage"},
                                          {kMipBlockCoverage, "Block Coverage"},
                                          {kMipTimestamp, "Function Timestamp"},
                                          {kMipCallCount, "Function Call Count"}};
}  // namespace document_keys

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_MIP_DOCUMENT_EVENTS_H_
