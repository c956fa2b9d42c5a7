#include "output/profile_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "formats/profile/profile_json_reader.h"
#include "output/json_stream.h"
#include "status/status.h"

namespace clrsampler {
namespace {

nlohmann::ordered_json MetaJson(const ProfileMeta& meta) {
  nlohmann::ordered_json json = {{"view", std::string(ProfileViewText(meta.view))},
                                 {"unit", std::string(WeightUnitText(meta.unit))},
                                 {"period_ns", meta.period_ns},
                                 {"start_unix_ns", meta.start_unix_ns},
                                 {"start_monotonic_ns", meta.start_monotonic_ns},
                                 {"duration_ns", meta.duration_ns},
                                 {"whole_host", meta.whole_host},
                                 {"host", meta.host},
                                 {"command", meta.command},
                                 {"pids", meta.pids},
                                 {"creator", meta.creator}};
  if (!meta.recorded.empty()) {
    nlohmann::ordered_json& times = json["recorded_ns"] = nlohmann::ordered_json::array();
    for (const TimeStretch& stretch : meta.recorded) {
      times.push_back(stretch.begin_ns);
      times.push_back(stretch.end_ns);
    }
  }
  for (const auto& [pid, labels] : meta.labels) {
    nlohmann::ordered_json& of_process = json["labels"][absl::StrCat(pid)] = nlohmann::ordered_json::object();
    labels.ForEach([&](absl::string_view name, const std::string& value) { of_process[std::string(name)] = value; });
  }
  if (!meta.account_json.empty()) {
    json["account"] = nlohmann::ordered_json::parse(meta.account_json, nullptr, /*allow_exceptions=*/false);
  }
  return json;
}

// Closes the table before it.
void WriteSources(const std::vector<ModelSource>& sources, JsonStream& out) {
  out.Raw("},\n\"sources\": {\n  \"file\": ").Array(sources.size(), [&](size_t i) { out.Number(sources[i].file); });
  out.Raw(",\n  \"url\": ").Array(sources.size(), [&](size_t i) { out.Number(sources[i].url); });
  if (std::any_of(sources.begin(), sources.end(), [](const ModelSource& source) { return !source.text.empty(); })) {
    out.Raw(",\n  \"text\": ").Array(sources.size(), [&](size_t i) { out.String(sources[i].text); });
  }
}

// All entries of the bodies' lists, one list behind the other.
template <typename List, typename Value>
void WriteOfAll(const std::vector<ModelCode>& code, absl::string_view before, absl::string_view name, List list,
                Value value, JsonStream& out) {
  std::vector<uint64_t> values;
  for (const ModelCode& body : code) {
    for (const auto& entry : body.*list) values.push_back(entry.*value);
  }
  out.Raw(before).Raw("\"").Raw(name).Raw("\": ").Array(values.size(), [&](size_t i) { out.Number(values[i]); });
}

// Closes the table before it.
void WriteCode(const std::vector<ModelCode>& code, JsonStream& out) {
  const auto column = [&](absl::string_view before, absl::string_view name, auto value) {
    out.Raw(before).Raw("\"").Raw(name).Raw("\": ").Array(code.size(), [&](size_t i) { out.Number(value(code[i])); });
  };
  out.Raw("},\n\"code_machines\": ").Array(kCodeMachineCount, [&](size_t i) {
    out.String(CodeMachineText(static_cast<CodeMachine>(i)));
  });
  out.Raw(",\n\"code\": {");
  column("\n  ", "frame", [](const ModelCode& body) { return body.frame; });
  column(",\n  ", "pid", [](const ModelCode& body) { return body.pid; });
  column(",\n  ", "machine", [](const ModelCode& body) { return static_cast<uint32_t>(body.machine); });
  column(",\n  ", "address", [](const ModelCode& body) { return body.address; });
  column(",\n  ", "time_ns", [](const ModelCode& body) { return body.time_ns; });
  column(",\n  ", "lines", [](const ModelCode& body) { return body.lines.size(); });
  column(",\n  ", "self", [](const ModelCode& body) { return body.self.size(); });
  out.Raw(",\n  \"bytes\": ").Array(code.size(), [&](size_t i) { out.String(absl::Base64Escape(code[i].bytes)); });
  out.Raw("},\n\"code_lines\": {");
  WriteOfAll(code, "\n  ", "offset", &ModelCode::lines, &ModelCodeLine::offset, out);
  WriteOfAll(code, ",\n  ", "file", &ModelCode::lines, &ModelCodeLine::file, out);
  WriteOfAll(code, ",\n  ", "line", &ModelCode::lines, &ModelCodeLine::line, out);
  WriteOfAll(code, ",\n  ", "column", &ModelCode::lines, &ModelCodeLine::column, out);
  out.Raw("},\n\"code_self\": {");
  WriteOfAll(code, "\n  ", "offset", &ModelCode::self, &ModelCodeWeight::offset, out);
  WriteOfAll(code, ",\n  ", "weight", &ModelCode::self, &ModelCodeWeight::weight, out);
}

// Closes the table before it.
void WriteEvents(const std::vector<ModelEvent>& events, JsonStream& out) {
  const auto column = [&](absl::string_view before, absl::string_view name, auto value) {
    out.Raw(before).Raw("\"").Raw(name).Raw("\": ").Array(events.size(),
                                                          [&](size_t i) { out.Number(value(events[i])); });
  };
  out.Raw("},\n\"event_kinds\": ").Array(kModelEventKindCount, [&](size_t i) {
    out.String(ModelEventKindText(static_cast<ModelEventKind>(i)));
  });
  out.Raw(",\n\"events\": {");
  column("\n  ", "kind", [](const ModelEvent& event) { return static_cast<uint32_t>(event.kind); });
  column(",\n  ", "time_ns", [](const ModelEvent& event) { return event.time_ns; });
  column(",\n  ", "duration_ns", [](const ModelEvent& event) { return event.duration_ns; });
  column(",\n  ", "thread", [](const ModelEvent& event) { return event.thread; });
  column(",\n  ", "name", [](const ModelEvent& event) { return event.name; });
  column(",\n  ", "detail", [](const ModelEvent& event) { return event.detail; });
}

// One array of a table: `value` gives the number of each row.
template <typename Value>
void Column(absl::string_view before, absl::string_view name, size_t size, Value value, JsonStream& out) {
  out.Raw(before).Raw("\"").Raw(name).Raw("\": ").Array(size, [&](size_t i) { out.Number(value(i)); });
}

// The meaning of the numbers in later tables.
void WriteWords(const ProfileModel& model, bool lines, JsonStream& out) {
  out.Raw(",\n\"frame_kinds\": ").Array(kModelFrameKindCount, [&](size_t i) {
    out.String(ModelFrameKindText(static_cast<ModelFrameKind>(i)));
  });
  out.Raw(",\n\"sample_states\": ").Array(kSampleStateCount, [&](size_t i) {
    out.String(SampleStateText(static_cast<SampleState>(i)));
  });
  if (lines) {
    out.Raw(",\n\"line_kinds\": ").Array(kLineKindCount, [&](size_t i) {
      out.String(LineKindText(static_cast<LineKind>(i)));
    });
  }
  out.Raw(",\n\"strings\": ").Array(model.strings.size(), [&](size_t i) {
    out.String(model.text(static_cast<StringIndex>(i)));
  });
}

void WriteFrames(const std::vector<ModelFrame>& frames, bool lines, JsonStream& out) {
  const auto column = [&](absl::string_view before, absl::string_view name, auto member) {
    Column(
        before, name, frames.size(), [&](size_t i) { return frames[i].*member; }, out);
  };
  out.Raw(",\n\"frames\": {");
  Column(
      "\n  ", "kind", frames.size(), [&](size_t i) { return static_cast<uint32_t>(frames[i].kind); }, out);
  column(",\n  ", "name", &ModelFrame::name);
  column(",\n  ", "system_name", &ModelFrame::system_name);
  column(",\n  ", "source", &ModelFrame::source);
  column(",\n  ", "module", &ModelFrame::module);
  column(",\n  ", "module_path", &ModelFrame::module_path);
  column(",\n  ", "build_id", &ModelFrame::build_id);
  column(",\n  ", "file_hash", &ModelFrame::file_hash);
  column(",\n  ", "tier", &ModelFrame::tier);
  column(",\n  ", "source_file", &ModelFrame::source_file);
  column(",\n  ", "address", &ModelFrame::address);
  column(",\n  ", "size", &ModelFrame::size);
  if (!lines) return;
  column(",\n  ", "line", &ModelFrame::line);
  column(",\n  ", "column", &ModelFrame::column);
  Column(
      ",\n  ", "line_kind", frames.size(), [&](size_t i) { return static_cast<uint32_t>(frames[i].line_kind); }, out);
}

// This and the next close the table before them.
void WriteThreads(const std::vector<ModelThread>& threads, JsonStream& out) {
  const auto column = [&](absl::string_view before, absl::string_view name, uint32_t ModelThread::*member) {
    Column(
        before, name, threads.size(), [&](size_t i) { return threads[i].*member; }, out);
  };
  out.Raw("},\n\"threads\": {");
  column("\n  ", "pid", &ModelThread::pid);
  column(",\n  ", "tid", &ModelThread::tid);
  column(",\n  ", "comm", &ModelThread::comm);
  column(",\n  ", "name", &ModelThread::name);
  column(",\n  ", "container_id", &ModelThread::container_id);
}

void WriteLinks(const std::vector<TraceLink>& links, JsonStream& out) {
  const auto column = [&](absl::string_view before, absl::string_view name, auto text) {
    out.Raw(before).Raw("\"").Raw(name).Raw("\": ").Array(
        links.size(), [&](size_t i) { out.String(links[i].valid() ? text(links[i]) : ""); });
  };
  out.Raw("},\n\"links\": {");
  column("\n  ", "trace_id", [](const TraceLink& link) { return link.TraceText(); });
  column(",\n  ", "span_id", [](const TraceLink& link) { return link.SpanText(); });
}

void WriteSamples(const SampleColumns& samples, JsonStream& out) {
  const auto column = [&](absl::string_view before, absl::string_view name, auto value) {
    Column(before, name, samples.size(), value, out);
  };
  out.Raw("},\n\"samples\": {");
  column("\n  ", "thread", [&](size_t i) { return samples.thread[i]; });
  column(",\n  ", "stack", [&](size_t i) { return samples.stack[i]; });
  if (!samples.time_ns.empty()) {
    out.Raw(",\n  \"time_ns\": ").Array(samples.size(), [&](size_t i) {
      if (samples.time_ns[i] == kNoTime) {
        out.Raw("null");
      } else {
        out.Number(samples.time_ns[i]);
      }
    });
  }
  if (!samples.state.empty()) {
    column(",\n  ", "state", [&](size_t i) { return static_cast<uint32_t>(samples.state[i]); });
  }
  if (!samples.weight.empty()) column(",\n  ", "weight", [&](size_t i) { return samples.weight[i]; });
  if (!samples.link.empty()) column(",\n  ", "link", [&](size_t i) { return samples.link[i]; });
}

}  // namespace

absl::Status ProfileJsonWriter::Write(const ProfileModel& model, const OutputSink& sink) const {
  JsonStream out(sink);
  out.Raw("{\"format\": ").String(kProfileJsonFormat).Raw(", \"version\": ").Number(kProfileJsonVersion);
  out.Raw(",\n\"meta\": ").Value(MetaJson(model.meta));
  const bool lines = HasLines(model);
  WriteWords(model, lines, out);
  WriteFrames(model.frames, lines, out);
  out.Raw("},\n\"nodes\": {");
  Column(
      "\n  ", "parent", model.nodes.size(), [&](size_t i) { return model.nodes[i].parent; }, out);
  Column(
      ",\n  ", "frame", model.nodes.size(), [&](size_t i) { return model.nodes[i].frame; }, out);
  if (!model.sources.empty()) WriteSources(model.sources, out);
  if (!model.code.empty()) WriteCode(model.code, out);
  WriteThreads(model.threads, out);
  if (!model.events.empty()) WriteEvents(model.events, out);
  if (!model.samples.link.empty()) WriteLinks(model.links, out);
  WriteSamples(model.samples, out);
  out.Raw("}}\n");
  return out.Finish();
}

}  // namespace clrsampler
