#include "formats/profile/profile_json_reader.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "formats/profile/json_tables.h"
#include "formats/profile/json_tree_builder.h"
#include "formats/profile/profile_json_tables.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr size_t kMaxDepth = 64;
constexpr size_t kMaxRows = std::max(kReadLimits.samples, kReadLimits.nodes);  // of a table
// The account of a host has some ten values for each process, in objects of a few dozen keys.
constexpr JsonTreeBuilder::Limits kAccountLimits = {.values = 1'000'000, .keys = 256, .key_bytes = 128};

absl::Status NotOurs(absl::string_view why) {
  return WithHint(absl::DataLossError(absl::StrCat("not a profile of clrsampler: ", why)),
                  "was the file written to its end, and copied as a whole?");
}

// Takes the parser's events (nlohmann's SAX interface) and fills the tables.
//
//   depth 1: {"frames": depth 2: {"name": depth 3: [...]}, "strings": depth 2: [...]}
class TableEvents {
 public:
  TableEvents(FileTables& tables, ProfileModelBuilder& builder) : tables_(tables), builder_(builder) {}

  absl::Status status() const { return status_; }

  bool null() { return number_null(); }
  bool boolean(bool value) {
    if (account_.open()) return AddToAccount(value);
    if (depth_ == 2 && section_ == "meta" && key_ == "whole_host") tables_.meta.whole_host = value;
    return narrow_ == nullptr && wide_ == nullptr ? true : Fail(Place("no number"));
  }
  bool number_integer(int64_t value) {
    if (account_.open()) return AddToAccount(value);
    return narrow_ == nullptr && wide_ == nullptr ? true : Fail(Place("a negative number"));
  }
  bool number_float(double value, const std::string&) {
    if (account_.open()) return AddToAccount(value);
    return narrow_ == nullptr && wide_ == nullptr ? true : Fail(Place("no whole number"));
  }
  bool number_unsigned(uint64_t value) {
    if ((narrow_ != nullptr && narrow_->size() >= kMaxRows) || (wide_ != nullptr && wide_->size() >= kMaxRows)) {
      return Fail(Place(absl::StrCat("more than ", kMaxRows, " entries")));
    }
    if (narrow_ != nullptr) {
      if (value > std::numeric_limits<uint32_t>::max()) return Fail(Place(absl::StrCat(value, " is too large")));
      narrow_->push_back(static_cast<uint32_t>(value));
      return true;
    }
    if (wide_ != nullptr) {
      wide_->push_back(value);
      return true;
    }
    if (account_.open()) return AddToAccount(value);
    if (depth_ == 1 && section_ == "version") tables_.version = value;
    if (depth_ == 2 && section_ == "meta") {
      if (key_ == "period_ns") tables_.meta.period_ns = value;
      if (key_ == "start_unix_ns") tables_.meta.start_unix_ns = value;
      if (key_ == "start_monotonic_ns") tables_.meta.start_monotonic_ns = value;
      if (key_ == "duration_ns") tables_.meta.duration_ns = value;
    }
    return true;
  }
  bool string(std::string& value) {
    if (account_.open()) return AddToAccount(value);
    if (narrow_ != nullptr || wide_ != nullptr) return Fail(Place("no number"));
    if (depth_ == 1 && section_ == "format") tables_.format = value;
    if (depth_ == 2 && in_list_) return AddToList(value);
    if (depth_ == 3 && section_ == "sources" && key_ == "text") return AddSourceText(value);
    if (depth_ == 3 && section_ == "code" && key_ == "bytes") return AddCodeBytes(value);
    if (depth_ == 2 && section_ == "meta") return SetMeta(value);
    return true;
  }
  bool binary(nlohmann::json::binary_t&) { return true; }

  bool start_object(size_t) {
    if (!Enter()) return false;
    if (account_.open() || (depth_ == 3 && section_ == "meta" && key_ == "account")) {
      return OpenInAccount(nlohmann::ordered_json::object());
    }
    return true;
  }
  bool key(std::string& key) {
    if (account_.open()) {
      account_.Key(key);
      return true;
    }
    if (depth_ == 1) section_ = key;
    if (depth_ == 2) key_ = key;
    return true;
  }
  bool end_object() { return Leave(); }
  bool start_array(size_t) {
    if (narrow_ != nullptr || wide_ != nullptr) return Fail(Place("no number"));
    if (!Enter()) return false;
    if (account_.open()) return OpenInAccount(nlohmann::ordered_json::array());
    if (depth_ == 2) {
      in_list_ = true;
    } else if (depth_ == 3 && !in_list_) {
      OpenColumn();
    }
    return true;
  }
  bool end_array() {
    narrow_ = nullptr;
    wide_ = nullptr;
    if (depth_ == 2) in_list_ = false;
    return Leave();
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) {
    return Fail(absl::StrCat("the JSON text is damaged at byte ", position));
  }

 private:
  bool Fail(absl::string_view why) {
    status_ = NotOurs(why);
    return false;
  }
  std::string Place(absl::string_view what) const { return absl::StrCat(what, " in ", section_, ".", key_); }

  bool Enter() { return ++depth_ <= kMaxDepth || Fail(absl::StrCat("values are nested ", depth_, " deep")); }
  bool Leave() {
    if (account_.open()) account_.Close();
    --depth_;
    if (depth_ == 2 && !account_.open() && section_ == "meta" && key_ == "account" && account_.value().is_object()) {
      // As --stats writes it.
      tables_.meta.account_json =
          account_.value().dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
    }
    return true;
  }

  bool number_null() {
    if (account_.open()) return AddToAccount(nullptr);
    if (wide_ == &tables_.time_ns) {
      if (wide_->size() >= kMaxRows) return Fail(Place(absl::StrCat("more than ", kMaxRows, " entries")));
      wide_->push_back(kNoTime);
      return true;
    }
    return narrow_ == nullptr && wide_ == nullptr ? true : Fail(Place("no number"));
  }

  bool AddToAccount(nlohmann::ordered_json value) {
    account_.Add(std::move(value));
    return AccountFits();
  }
  bool OpenInAccount(nlohmann::ordered_json container) {
    account_.Open(std::move(container));
    return AccountFits();
  }
  bool AccountFits() { return !account_.full() || Fail("its account is larger than that of any run"); }

  bool AddToList(const std::string& text) {
    if (section_ == "strings") {
      if (tables_.strings.size() >= kMaxRows) return Fail("it has too many strings");
      tables_.strings.push_back(builder_.String(text));
      return builder_.ok();
    }
    // No more words than a table of this version could have.
    if (section_ == "frame_kinds" && tables_.frame_kinds.size() < 256) tables_.frame_kinds.push_back(text);
    if (section_ == "event_kinds" && tables_.event_kinds.size() < 256) tables_.event_kinds.push_back(text);
    if (section_ == "line_kinds" && tables_.line_kinds.size() < 256) tables_.line_kinds.push_back(text);
    if (section_ == "code_machines" && tables_.code_machines.size() < 256) tables_.code_machines.push_back(text);
    if (section_ == "sample_states" && tables_.sample_states.size() < 256) tables_.sample_states.push_back(text);
    return true;
  }

  bool AddSourceText(std::string& text) {
    if (text.size() > kMaxSourceTextBytes || text.size() > kMaxSourceTextsBytes - source_bytes_) {
      return Fail(Place("more than 4 MiB of one text, or 64 MiB of all"));
    }
    if (tables_.texts.size() >= kReadLimits.frames) return Fail(Place("too many entries"));
    source_bytes_ += text.size();
    tables_.texts.push_back(std::move(text));
    return true;
  }

  bool AddCodeBytes(absl::string_view text) {
    std::string bytes;
    if (text.size() > 4 * (kMaxCodeBodyBytes / 3 + 1) || !absl::Base64Unescape(text, &bytes)) {
      return Fail(Place("no base64 of at most 1 MiB"));
    }
    if (bytes.size() > kMaxCodeBodiesBytes - code_bytes_) return Fail(Place("more than 64 MiB"));
    if (tables_.code_bytes.size() >= kReadLimits.frames) return Fail(Place("too many entries"));
    code_bytes_ += bytes.size();
    tables_.code_bytes.push_back(std::move(bytes));
    return true;
  }

  bool SetMeta(const std::string& text) {
    if (text.size() > kMaxModelStringBytes) return Fail(Place("more than 1 MiB"));
    if (key_ == "host") tables_.meta.host = text;
    if (key_ == "command") tables_.meta.command = text;
    if (key_ == "creator") tables_.meta.creator = text;
    if (key_ == "view") {
      const std::optional<ProfileView> view = ProfileViewOf(text);
      if (!view) return Fail("its view is of a kind that this version does not know");
      tables_.meta.view = *view;
    }
    if (key_ == "unit") {
      const std::optional<WeightUnit> unit = WeightUnitOf(text);
      if (!unit) return Fail("its weights have a unit that this version does not know");
      tables_.meta.unit = *unit;
    }
    return true;
  }

  void OpenColumn() {
    for (const WideColumn& column : kWideColumns) {
      if (column.section == section_ && column.name == key_) wide_ = &(tables_.*column.values);
    }
    if (section_ == "meta" && key_ == "pids") narrow_ = &tables_.meta.pids;
    for (const NarrowColumn& column : kNarrowColumns) {
      if (column.section == section_ && column.name == key_) narrow_ = &(tables_.*column.values);
    }
  }

  FileTables& tables_;
  ProfileModelBuilder& builder_;
  absl::Status status_;
  size_t depth_ = 0;
  std::string section_;  // key at depth 1
  std::string key_;      // at depth 2
  bool in_list_ = false;
  size_t source_bytes_ = 0;                  // of all texts of files
  size_t code_bytes_ = 0;                    // of all bodies
  std::vector<uint32_t>* narrow_ = nullptr;  // the column that is being read
  std::vector<uint64_t>* wide_ = nullptr;
  JsonTreeBuilder account_{kAccountLimits};
};

// Tables of a file -> the model, each index checked.
class ModelMaker {
 public:
  ModelMaker(FileTables& tables, ProfileModelBuilder& builder) : tables_(tables), builder_(builder) {}

  absl::Status Make() {
    for (const NarrowColumn& column : kNarrowColumns) {
      RETURN_IF_ERROR(CheckSize(column.section, column.name, (tables_.*column.values).size()));
    }
    for (const WideColumn& column : kWideColumns) {
      RETURN_IF_ERROR(CheckSize(column.section, column.name, (tables_.*column.values).size()));
    }
    if (!tables_.texts.empty() && tables_.texts.size() != tables_.file.size()) {
      return NotOurs(absl::StrCat("sources.text has ", tables_.texts.size(), " entries and not ", tables_.file.size()));
    }
    builder_.meta() = std::move(tables_.meta);
    RETURN_IF_ERROR(MakeFrames());
    RETURN_IF_ERROR(MakeSources());
    RETURN_IF_ERROR(MakeNodes());
    RETURN_IF_ERROR(MakeThreads());
    RETURN_IF_ERROR(MakeCode());
    RETURN_IF_ERROR(MakeEvents());
    return MakeSamples();
  }

 private:
  static absl::Status Outside(absl::string_view what, uint64_t index) {
    return NotOurs(absl::StrCat(what, " ", index, " is in none of its tables"));
  }

  // Columns have an entry for each row of their table, or are left out.
  absl::Status CheckSize(absl::string_view section, absl::string_view name, size_t size) const {
    const size_t rows = RowsOf(tables_, section);
    const bool needed = name == "frame" || name == "thread";
    if (size == rows || (size == 0 && !needed)) return absl::OkStatus();
    return NotOurs(absl::StrCat(section, ".", name, " has ", size, " entries and not ", rows));
  }

  static uint32_t ValueOr0(const std::vector<uint32_t>& column, size_t row) { return column.empty() ? 0 : column[row]; }

  // Sets `out` to the model's index of a string of the file.
  absl::Status Text(const std::vector<uint32_t>& column, size_t row, StringIndex& out) const {
    if (column.empty()) return absl::OkStatus();
    if (column[row] >= tables_.strings.size()) return Outside("string", column[row]);
    out = tables_.strings[column[row]];
    return absl::OkStatus();
  }

  absl::Status MakeFrames() {
    frames_.reserve(tables_.name.size());
    for (size_t i = 0; i < tables_.name.size(); ++i) {
      ModelFrame frame;
      // A kind of a newer version is not known to us.
      const uint32_t kind = ValueOr0(tables_.kind, i);
      if (kind < tables_.frame_kinds.size()) {
        frame.kind = ModelFrameKindOf(tables_.frame_kinds[kind]).value_or(ModelFrameKind::kUnknown);
      } else if (!tables_.kind.empty()) {
        return Outside("kind of frames", kind);
      }
      RETURN_IF_ERROR(Text(tables_.name, i, frame.name));
      RETURN_IF_ERROR(Text(tables_.system_name, i, frame.system_name));
      RETURN_IF_ERROR(Text(tables_.source, i, frame.source));
      RETURN_IF_ERROR(Text(tables_.module, i, frame.module));
      RETURN_IF_ERROR(Text(tables_.module_path, i, frame.module_path));
      RETURN_IF_ERROR(Text(tables_.build_id, i, frame.build_id));
      RETURN_IF_ERROR(Text(tables_.file_hash, i, frame.file_hash));
      RETURN_IF_ERROR(Text(tables_.tier, i, frame.tier));
      RETURN_IF_ERROR(Text(tables_.source_file, i, frame.source_file));
      if (!tables_.address.empty()) frame.address = tables_.address[i];
      frame.size = ValueOr0(tables_.size, i);
      frame.line = ValueOr0(tables_.line, i);
      frame.column = ValueOr0(tables_.column, i);
      if (const uint32_t line_kind = ValueOr0(tables_.line_kind, i); line_kind < tables_.line_kinds.size()) {
        frame.line_kind = LineKindOf(tables_.line_kinds[line_kind]).value_or(LineKind::kNone);
      } else if (!tables_.line_kind.empty()) {
        return Outside("kind of lines", line_kind);
      }
      frames_.push_back(builder_.Frame(frame));
    }
    return absl::OkStatus();
  }

  absl::Status MakeSources() {
    for (size_t i = 0; i < tables_.file.size() && builder_.ok(); ++i) {
      StringIndex file = 0, url = 0;
      RETURN_IF_ERROR(Text(tables_.file, i, file));
      RETURN_IF_ERROR(Text(tables_.url, i, url));
      builder_.Source(file, url, tables_.texts.empty() ? "" : tables_.texts[i]);
    }
    return absl::OkStatus();
  }

  absl::Status MakeNodes() {
    nodes_.assign(1, kRootNode);
    nodes_.reserve(tables_.parent.size());
    for (size_t i = 1; i < tables_.parent.size(); ++i) {
      if (tables_.parent[i] >= i) return NotOurs(absl::StrCat("node ", i, " comes before its parent"));
      if (tables_.frame[i] >= frames_.size()) return Outside("frame", tables_.frame[i]);
      nodes_.push_back(builder_.Node(nodes_[tables_.parent[i]], frames_[tables_.frame[i]]));
      if (!builder_.ok()) return absl::OkStatus();  // Build says why
    }
    return absl::OkStatus();
  }

  absl::Status MakeThreads() {
    threads_.reserve(tables_.comm.size());
    for (size_t i = 0; i < tables_.comm.size(); ++i) {
      ModelThread thread;
      thread.pid = ValueOr0(tables_.pid, i);
      thread.tid = ValueOr0(tables_.tid, i);
      RETURN_IF_ERROR(Text(tables_.comm, i, thread.comm));
      RETURN_IF_ERROR(Text(tables_.thread_name, i, thread.name));
      RETURN_IF_ERROR(Text(tables_.container_id, i, thread.container_id));
      threads_.push_back(builder_.Thread(thread));
    }
    return absl::OkStatus();
  }

  absl::Status MakeCode() {
    for (size_t i = 0; i < tables_.code_bytes.size() && builder_.ok(); ++i) {
      ModelCode code;
      RETURN_IF_ERROR(SetCodeRow(i, code));
      RETURN_IF_ERROR(TakeCodeLines(ValueOr0(tables_.code_lines, i), code));
      RETURN_IF_ERROR(TakeCodeWeights(ValueOr0(tables_.code_self, i), code));
      builder_.Code(std::move(code));
    }
    return absl::OkStatus();
  }

  absl::Status SetCodeRow(size_t i, ModelCode& code) {
    if (tables_.code_frame[i] >= frames_.size()) return Outside("frame", tables_.code_frame[i]);
    code.frame = frames_[tables_.code_frame[i]];
    const uint32_t machine = ValueOr0(tables_.code_machine, i);
    if (machine >= tables_.code_machines.size()) return Outside("kind of machine", machine);
    const std::optional<CodeMachine> known = CodeMachineOf(tables_.code_machines[machine]);
    if (!known) return NotOurs("machine code of a kind that this version does not know");
    code.machine = *known;
    code.pid = ValueOr0(tables_.code_pid, i);
    if (!tables_.code_address.empty()) code.address = tables_.code_address[i];
    if (!tables_.code_time_ns.empty()) code.time_ns = tables_.code_time_ns[i];
    code.bytes = std::move(tables_.code_bytes[i]);
    return absl::OkStatus();
  }

  // Each body has the next rows of the two tables.
  absl::Status TakeCodeLines(uint32_t rows, ModelCode& code) {
    if (rows > tables_.line_offset.size() - next_line_) return Outside("line of code", next_line_ + uint64_t{rows});
    for (const size_t end = next_line_ + rows; next_line_ < end; ++next_line_) {
      ModelCodeLine& at = code.lines.emplace_back();
      at.offset = tables_.line_offset[next_line_];
      RETURN_IF_ERROR(Text(tables_.line_file, next_line_, at.file));
      at.line = ValueOr0(tables_.line_line, next_line_);
      at.column = ValueOr0(tables_.line_column, next_line_);
    }
    return absl::OkStatus();
  }

  absl::Status TakeCodeWeights(uint32_t rows, ModelCode& code) {
    if (rows > tables_.self_offset.size() - next_self_) return Outside("sample of code", next_self_ + uint64_t{rows});
    for (const size_t end = next_self_ + rows; next_self_ < end; ++next_self_) {
      const uint64_t weight = tables_.self_weight.empty() ? 1 : tables_.self_weight[next_self_];
      code.self.push_back({tables_.self_offset[next_self_], weight});
    }
    return absl::OkStatus();
  }

  // A kind of a newer version is left out.
  absl::Status MakeEvents() {
    for (size_t i = 0; i < tables_.event_time_ns.size() && builder_.ok(); ++i) {
      ModelEvent event;
      const uint32_t kind = ValueOr0(tables_.event_kind, i);
      if (kind >= tables_.event_kinds.size()) return Outside("kind of events", kind);
      if (tables_.event_thread[i] >= threads_.size()) return Outside("thread", tables_.event_thread[i]);
      event.thread = threads_[tables_.event_thread[i]];
      event.time_ns = tables_.event_time_ns[i];
      if (!tables_.event_duration_ns.empty()) event.duration_ns = tables_.event_duration_ns[i];
      RETURN_IF_ERROR(Text(tables_.event_name, i, event.name));
      RETURN_IF_ERROR(Text(tables_.event_detail, i, event.detail));
      const std::optional<ModelEventKind> known = ModelEventKindOf(tables_.event_kinds[kind]);
      if (!known) continue;
      event.kind = *known;
      builder_.Event(event);
    }
    return absl::OkStatus();
  }

  absl::Status MakeSamples() {
    for (size_t i = 0; i < tables_.stack.size() && builder_.ok(); ++i) {
      ModelSample sample;
      if (tables_.thread[i] >= threads_.size()) return Outside("thread", tables_.thread[i]);
      if (tables_.stack[i] >= nodes_.size()) return Outside("node", tables_.stack[i]);
      sample.thread = threads_[tables_.thread[i]];
      sample.stack = nodes_[tables_.stack[i]];
      if (!tables_.time_ns.empty()) sample.time_ns = tables_.time_ns[i];
      if (!tables_.weight.empty()) sample.weight = tables_.weight[i];
      const uint32_t state = ValueOr0(tables_.state, i);
      if (state < tables_.sample_states.size()) {
        sample.state = SampleStateOf(tables_.sample_states[state]).value_or(SampleState::kNone);
      } else if (!tables_.state.empty()) {
        return Outside("state", state);
      }
      builder_.Add(sample);
    }
    return absl::OkStatus();
  }

  FileTables& tables_;
  ProfileModelBuilder& builder_;
  std::vector<FrameIndex> frames_;  // the model's, by the file's
  std::vector<NodeIndex> nodes_;
  std::vector<ThreadIndex> threads_;
  size_t next_line_ = 0, next_self_ = 0;  // rows of code_lines and code_self
};

}  // namespace

absl::StatusOr<ProfileModel> ReadProfileJson(absl::string_view text) {
  FileTables tables;
  ProfileModelBuilder builder(kReadLimits);
  TableEvents events(tables, builder);
  RETURN_IF_ERROR(ParseTables(text, events, builder, NotOurs("the JSON text is damaged")));
  if (tables.format != kProfileJsonFormat) return NotOurs(absl::StrCat("\"format\" is not ", kProfileJsonFormat));
  if (tables.version != kProfileJsonVersion) {
    return WithHint(absl::UnimplementedError(absl::StrCat("a profile in version ", tables.version, " of the format")),
                    absl::StrCat("this version of clrsampler reads version ", kProfileJsonVersion));
  }
  RETURN_IF_ERROR(ModelMaker(tables, builder).Make());
  return std::move(builder).Build();
}

}  // namespace clrsampler
