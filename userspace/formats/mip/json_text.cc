#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "formats/mip/document_events.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr size_t kTextPieceBytes = 256 * 1024;

// One line for each element of a list that is not short.
class JsonWriter : public DocumentWriter {
 public:
  explicit JsonWriter(const MipSink& sink) : sink_(sink) {}

  void BeginMap() override { Open('{', false); }
  void EndMap() override { Close('}'); }
  void BeginList(bool one_line) override { Open('[', !one_line); }
  void EndList() override { Close(']'); }
  void Key(absl::string_view key) override {
    Separate();
    absl::StrAppend(&piece_, "\"", key, "\":");
    after_key_ = true;
  }
  void Text(absl::string_view text) override {
    Separate();
    piece_ += nlohmann::json(std::string(text)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  // This is a text, since a signature is larger than the numbers of many readers can be.
  void Hex(uint64_t value) override {
    Separate();
    absl::StrAppendFormat(&piece_, "\"0x%X\"", value);
  }
  void Number(uint64_t value) override {
    Separate();
    absl::StrAppend(&piece_, value);
  }
  void Bool(bool value) override {
    Separate();
    piece_ += value ? "true" : "false";
  }
  bool failed() const override { return !status_.ok(); }
  absl::Status Finish() override {
    piece_ += '\n';
    Flush();
    return status_;
  }

 private:
  struct Container {
    bool has_lines;
    bool empty = true;
  };
  void Separate() {
    if (after_key_) {
      after_key_ = false;
    } else if (!containers_.empty()) {
      if (!containers_.back().empty) piece_ += ',';
      if (containers_.back().has_lines) piece_ += '\n';
      containers_.back().empty = false;
    }
  }
  void Open(char bracket, bool has_lines) {
    Separate();
    piece_ += bracket;
    containers_.push_back({has_lines && containers_.size() < 2});
  }
  void Close(char bracket) {
    containers_.pop_back();
    piece_ += bracket;
    if (piece_.size() >= kTextPieceBytes) Flush();
  }
  void Flush() {
    if (status_.ok()) status_ = sink_(piece_);
    piece_.clear();
  }

  const MipSink& sink_;
  std::string piece_;
  std::vector<Container> containers_;
  bool after_key_ = false;
  absl::Status status_;
};

// nlohmann's events -> ours.
class JsonEvents {
 public:
  explicit JsonEvents(DocumentReader& reader) : reader_(reader) {}
  absl::Status status() const { return status_; }

  bool null() { return Take(reader_.Scalar("null")); }
  bool boolean(bool value) { return Take(reader_.Scalar(value ? "true" : "false")); }
  bool number_integer(int64_t value) { return Take(reader_.Scalar(absl::StrCat(value))); }
  bool number_unsigned(uint64_t value) { return Take(reader_.Scalar(absl::StrCat(value))); }
  bool number_float(double, const std::string& text) { return Take(reader_.Scalar(text)); }
  bool string(std::string& text) { return Take(reader_.Scalar(text)); }
  bool binary(nlohmann::json::binary_t&) { return false; }
  bool start_object(size_t) { return Take(reader_.BeginMap()); }
  bool key(std::string& key) { return Take(reader_.Key(key)); }
  bool end_object() { return Take(reader_.EndMap()); }
  bool start_array(size_t) { return Take(reader_.BeginList()); }
  bool end_array() { return Take(reader_.EndList()); }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) {
    return Take(absl::DataLossError(absl::StrCat("the JSON text is damaged at byte ", position)));
  }

 private:
  bool Take(absl::Status status) {
    status_ = std::move(status);
    return status_.ok();
  }
  DocumentReader& reader_;
  absl::Status status_;
};

}  // namespace

std::unique_ptr<DocumentWriter> MakeJsonWriter(const MipSink& sink) { return std::make_unique<JsonWriter>(sink); }

absl::Status ReadJsonText(absl::string_view text, DocumentReader& reader) {
  JsonEvents events(reader);
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &events) && events.status().ok()) {
    return absl::DataLossError("the JSON text is damaged");
  }
  return events.status();
}

}  // namespace clrsampler
