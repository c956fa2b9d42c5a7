#include "formats/profile/profile_json_reader.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/profile/json_tables.h"
#include "formats/profile/profile_json_events.h"
#include "formats/profile/profile_json_tables.h"
#include "status/status.h"

namespace clrsampler {
namespace {

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
      return NotOurProfile(
          absl::StrCat("sources.text has ", tables_.texts.size(), " entries and not ", tables_.file.size()));
    }
    builder_.meta() = std::move(tables_.meta);
    RETURN_IF_ERROR(SetRecorded());
    RETURN_IF_ERROR(MakeLinks());
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
    return NotOurProfile(absl::StrCat(what, " ", index, " is in none of its tables"));
  }

  // Columns have an entry for each row of their table, or are left out.
  absl::Status CheckSize(absl::string_view section, absl::string_view name, size_t size) const {
    const size_t rows = RowsOf(tables_, section);
    const bool needed = name == "frame" || name == "thread";
    if (size == rows || (size == 0 && !needed)) return absl::OkStatus();
    return NotOurProfile(absl::StrCat(section, ".", name, " has ", size, " entries and not ", rows));
  }

  static uint32_t ValueOr0(const std::vector<uint32_t>& column, size_t row) { return column.empty() ? 0 : column[row]; }

  // Sets `out` to the model's index of a string of the file.
  absl::Status Text(const std::vector<uint32_t>& column, size_t row, StringIndex& out) const {
    if (column.empty()) return absl::OkStatus();
    if (column[row] >= tables_.strings.size()) return Outside("string", column[row]);
    out = tables_.strings[column[row]];
    return absl::OkStatus();
  }

  absl::Status SetRecorded() {
    const std::vector<uint64_t>& times = tables_.recorded_ns;
    if (times.size() % 2 != 0) return NotOurProfile("meta.recorded_ns has a beginning without an end");
    std::vector<TimeStretch> recorded;
    for (size_t i = 0; i < times.size(); i += 2) recorded.push_back({times[i], times[i + 1]});
    builder_.meta().SetRecorded(std::move(recorded));
    return absl::OkStatus();
  }

  // Row 0 of the table is none.
  absl::Status MakeLinks() {
    if (tables_.trace_rows != tables_.span_rows) {
      return NotOurProfile(absl::StrCat("links has ", tables_.trace_rows, " traces and ", tables_.span_rows, " spans"));
    }
    for (const TraceLink& link : tables_.links) links_.push_back(builder_.Link(link));
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
      if (tables_.parent[i] >= i) return NotOurProfile(absl::StrCat("node ", i, " comes before its parent"));
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
    if (!known) return NotOurProfile("machine code of a kind that this version does not know");
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
      if (const uint32_t link = ValueOr0(tables_.link, i); link > 0 && link >= links_.size()) {
        return Outside("link", link);
      } else if (link > 0) {
        sample.link = links_[link];
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
  std::vector<LinkIndex> links_;
  size_t next_line_ = 0, next_self_ = 0;  // rows of code_lines and code_self
};

}  // namespace

absl::StatusOr<ProfileModel> ReadProfileJson(absl::string_view text) {
  FileTables tables;
  ProfileModelBuilder builder(kReadLimits);
  ProfileJsonEvents events(tables, builder);
  RETURN_IF_ERROR(ParseTables(text, events, builder, NotOurProfile("the JSON text is damaged")));
  if (tables.format != kProfileJsonFormat) return NotOurProfile(absl::StrCat("\"format\" is not ", kProfileJsonFormat));
  if (tables.version != kProfileJsonVersion) {
    return WithHint(absl::UnimplementedError(absl::StrCat("a profile in version ", tables.version, " of the format")),
                    absl::StrCat("this version of clrsampler reads version ", kProfileJsonVersion));
  }
  RETURN_IF_ERROR(ModelMaker(tables, builder).Make());
  return std::move(builder).Build();
}

}  // namespace clrsampler
