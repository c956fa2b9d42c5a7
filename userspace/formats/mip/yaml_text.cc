#include <yaml.h>

#include <string>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "formats/mip/document_events.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// Whether readers take the text for one without quotes around it.
bool IsPlain(absl::string_view text) {
  if (text.empty() || !(absl::ascii_isalpha(static_cast<unsigned char>(text[0])) || text[0] == '_')) return false;
  for (const char c : text) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.' && c != '$') return false;
  }
  for (const absl::string_view word : {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}) {
    if (absl::EqualsIgnoreCase(text, word)) return false;
  }
  return true;
}

class YamlWriter : public DocumentWriter {
 public:
  explicit YamlWriter(const MipSink& sink) : sink_(sink) {
    yaml_emitter_initialize(&emitter_);
    yaml_emitter_set_output(&emitter_, &YamlWriter::Write, this);
    yaml_emitter_set_unicode(&emitter_, 1);
    yaml_emitter_set_width(&emitter_, -1);
    yaml_event_t event;
    yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING);
    Emit(event);
    yaml_document_start_event_initialize(&event, nullptr, nullptr, nullptr, 0);
    Emit(event);
  }
  ~YamlWriter() override { yaml_emitter_delete(&emitter_); }
  YamlWriter(const YamlWriter&) = delete;
  YamlWriter& operator=(const YamlWriter&) = delete;

  void BeginMap() override {
    yaml_event_t event;
    yaml_mapping_start_event_initialize(&event, nullptr, nullptr, 1, YAML_BLOCK_MAPPING_STYLE);
    Emit(event);
  }
  void EndMap() override {
    yaml_event_t event;
    yaml_mapping_end_event_initialize(&event);
    Emit(event);
  }
  void BeginList(bool one_line) override {
    yaml_event_t event;
    yaml_sequence_start_event_initialize(&event, nullptr, nullptr, 1,
                                         one_line ? YAML_FLOW_SEQUENCE_STYLE : YAML_BLOCK_SEQUENCE_STYLE);
    Emit(event);
  }
  void EndList() override {
    yaml_event_t event;
    yaml_sequence_end_event_initialize(&event);
    Emit(event);
  }
  void Key(absl::string_view key) override { Scalar(key, YAML_PLAIN_SCALAR_STYLE); }
  void Text(absl::string_view text) override {
    Scalar(text, IsPlain(text) || text == document_keys::kMipFile || IsKindWord(text)
                     ? YAML_PLAIN_SCALAR_STYLE
                     : YAML_DOUBLE_QUOTED_SCALAR_STYLE);
  }
  void Hex(uint64_t value) override { Scalar(absl::StrFormat("0x%X", value), YAML_PLAIN_SCALAR_STYLE); }
  void Number(uint64_t value) override { Scalar(absl::StrCat(value), YAML_PLAIN_SCALAR_STYLE); }
  void Bool(bool value) override { Scalar(value ? "true" : "false", YAML_PLAIN_SCALAR_STYLE); }

  bool failed() const override { return !status_.ok(); }
  absl::Status Finish() override {
    yaml_event_t event;
    yaml_document_end_event_initialize(&event, 1);
    Emit(event);
    yaml_stream_end_event_initialize(&event);
    Emit(event);
    return status_;
  }

 private:
  static bool IsKindWord(absl::string_view text) {
    for (const document_keys::KindWord& kind : document_keys::kKindWords) {
      if (text == kind.word) return true;
    }
    return false;
  }
  static int Write(void* self, unsigned char* bytes, size_t size) {
    auto& writer = *static_cast<YamlWriter*>(self);
    if (writer.status_.ok()) {
      writer.status_ = writer.sink_(absl::string_view(reinterpret_cast<const char*>(bytes), size));
    }
    return writer.status_.ok() ? 1 : 0;
  }
  void Scalar(absl::string_view text, yaml_scalar_style_t style) {
    yaml_event_t event;
    if (yaml_scalar_event_initialize(&event, nullptr, nullptr, reinterpret_cast<const yaml_char_t*>(text.data()),
                                     static_cast<int>(text.size()), 1, 1, style) == 0) {
      Fail("no memory, or a text that is no UTF-8");
      return;
    }
    Emit(event);
  }
  // Takes the event's memory.
  void Emit(yaml_event_t& event) {
    if (!status_.ok()) {
      yaml_event_delete(&event);
    } else if (yaml_emitter_emit(&emitter_, &event) == 0) {
      Fail(emitter_.problem == nullptr ? "unknown" : emitter_.problem);
    }
  }
  void Fail(absl::string_view why) {
    if (status_.ok()) status_ = absl::InternalError(absl::StrCat("writing YAML failed: ", why));
  }

  const MipSink& sink_;
  yaml_emitter_t emitter_;
  absl::Status status_;
};

absl::Status AtLine(const absl::Status& status, const yaml_mark_t& mark) {
  return Annotate(status, absl::StrCat("line ", mark.line + 1));
}

// Tells keys from values, which libyaml does not.
class YamlEvents {
 public:
  explicit YamlEvents(DocumentReader& reader) : reader_(reader) {}

  absl::Status Take(const yaml_event_t& event) {
    switch (event.type) {
      case YAML_MAPPING_START_EVENT:
        if (!maps_.empty() && maps_.back() == Map::kKey) return NoKey();
        ValueSeen();
        maps_.push_back(Map::kKey);
        return reader_.BeginMap();
      case YAML_SEQUENCE_START_EVENT:
        if (!maps_.empty() && maps_.back() == Map::kKey) return NoKey();
        ValueSeen();
        maps_.push_back(Map::kNone);
        return reader_.BeginList();
      case YAML_MAPPING_END_EVENT:
        maps_.pop_back();
        return reader_.EndMap();
      case YAML_SEQUENCE_END_EVENT:
        maps_.pop_back();
        return reader_.EndList();
      case YAML_SCALAR_EVENT: {
        const absl::string_view text(reinterpret_cast<const char*>(event.data.scalar.value), event.data.scalar.length);
        if (!maps_.empty() && maps_.back() == Map::kKey) {
          maps_.back() = Map::kValue;
          return reader_.Key(text);
        }
        ValueSeen();
        return reader_.Scalar(text);
      }
      case YAML_ALIAS_EVENT:
        return absl::DataLossError("an alias, which a profile has none of");
      default:
        return absl::OkStatus();
    }
  }

 private:
  enum class Map : uint8_t { kNone, kKey, kValue };  // what comes next in the innermost container
  static absl::Status NoKey() { return absl::DataLossError("a key that is no text"); }
  void ValueSeen() {
    if (!maps_.empty() && maps_.back() == Map::kValue) maps_.back() = Map::kKey;
  }
  DocumentReader& reader_;
  std::vector<Map> maps_;
};

}  // namespace

std::unique_ptr<DocumentWriter> MakeYamlWriter(const MipSink& sink) { return std::make_unique<YamlWriter>(sink); }

absl::Status ReadYamlText(absl::string_view text, DocumentReader& reader) {
  yaml_parser_t parser;
  if (yaml_parser_initialize(&parser) == 0) return absl::ResourceExhaustedError("no memory to read YAML");
  const auto delete_parser = absl::MakeCleanup([&] { yaml_parser_delete(&parser); });
  yaml_parser_set_input_string(&parser, reinterpret_cast<const unsigned char*>(text.data()), text.size());
  YamlEvents events(reader);
  for (bool done = false; !done;) {
    yaml_event_t event;
    if (yaml_parser_parse(&parser, &event) == 0) {
      const absl::string_view problem = parser.problem == nullptr ? "unreadable" : parser.problem;
      return AtLine(absl::DataLossError(absl::StrCat("the YAML text is damaged: ", problem)), parser.problem_mark);
    }
    done = event.type == YAML_STREAM_END_EVENT;
    const absl::Status taken = events.Take(event);
    const yaml_mark_t mark = event.start_mark;
    yaml_event_delete(&event);
    if (!taken.ok()) return AtLine(taken, mark);
  }
  return absl::OkStatus();
}

}  // namespace clrsampler
