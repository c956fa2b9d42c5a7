// The tables of a profile in our JSON format, as a file has them; profile_json_reader.cc fills and checks them.
#ifndef CLRSAMPLER_FORMATS_PROFILE_PROFILE_JSON_TABLES_H_
#define CLRSAMPLER_FORMATS_PROFILE_PROFILE_JSON_TABLES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "formats/profile/profile_model.h"

namespace clrsampler {

// Indexes are the file's own.
struct FileTables {
  std::string format;
  uint64_t version = 0;
  ProfileMeta meta;
  std::vector<uint64_t> recorded_ns;
  std::vector<std::string> frame_kinds, sample_states, line_kinds, event_kinds;
  std::vector<StringIndex> strings;  // the model's
  std::vector<uint32_t> kind, name, system_name, source, module, module_path, build_id, file_hash, tier, source_file,
      size;
  std::vector<uint32_t> line, column, line_kind;
  std::vector<uint64_t> address;
  std::vector<uint32_t> parent, frame;
  std::vector<uint32_t> file, url;
  std::vector<std::string> texts;  // of files
  std::vector<uint32_t> pid, tid, comm, thread_name, container_id;
  std::vector<uint32_t> event_kind, event_thread, event_name, event_detail;
  std::vector<uint64_t> event_time_ns, event_duration_ns;
  std::vector<TraceLink> links;
  size_t trace_rows = 0, span_rows = 0;  // ids of `links` that were read
  std::vector<uint32_t> thread, stack, state, link;
  std::vector<uint64_t> time_ns, weight;
  std::vector<std::string> code_machines, code_bytes;
  std::vector<uint32_t> code_frame, code_pid, code_machine, code_lines, code_self;
  std::vector<uint64_t> code_address, code_time_ns;
  std::vector<uint32_t> line_offset, line_file, line_line, line_column;
  std::vector<uint32_t> self_offset;
  std::vector<uint64_t> self_weight;
};

// A list of numbers in the file: its table, and its name there.
struct NarrowColumn {
  absl::string_view section, name;
  std::vector<uint32_t> FileTables::*values;
};
inline constexpr NarrowColumn kNarrowColumns[] = {
    {"frames", "kind", &FileTables::kind},
    {"frames", "name", &FileTables::name},
    {"frames", "system_name", &FileTables::system_name},
    {"frames", "source", &FileTables::source},
    {"frames", "module", &FileTables::module},
    {"frames", "module_path", &FileTables::module_path},
    {"frames", "build_id", &FileTables::build_id},
    {"frames", "file_hash", &FileTables::file_hash},
    {"frames", "tier", &FileTables::tier},
    {"frames", "source_file", &FileTables::source_file},
    {"frames", "size", &FileTables::size},
    {"frames", "line", &FileTables::line},
    {"frames", "column", &FileTables::column},
    {"frames", "line_kind", &FileTables::line_kind},
    {"sources", "file", &FileTables::file},
    {"sources", "url", &FileTables::url},
    {"nodes", "parent", &FileTables::parent},
    {"nodes", "frame", &FileTables::frame},
    {"threads", "pid", &FileTables::pid},
    {"threads", "tid", &FileTables::tid},
    {"threads", "comm", &FileTables::comm},
    {"threads", "name", &FileTables::thread_name},
    {"threads", "container_id", &FileTables::container_id},
    {"events", "kind", &FileTables::event_kind},
    {"events", "thread", &FileTables::event_thread},
    {"events", "name", &FileTables::event_name},
    {"events", "detail", &FileTables::event_detail},
    {"samples", "thread", &FileTables::thread},
    {"samples", "stack", &FileTables::stack},
    {"samples", "state", &FileTables::state},
    {"samples", "link", &FileTables::link},
    {"code", "frame", &FileTables::code_frame},
    {"code", "pid", &FileTables::code_pid},
    {"code", "machine", &FileTables::code_machine},
    {"code", "lines", &FileTables::code_lines},
    {"code", "self", &FileTables::code_self},
    {"code_lines", "offset", &FileTables::line_offset},
    {"code_lines", "file", &FileTables::line_file},
    {"code_lines", "line", &FileTables::line_line},
    {"code_lines", "column", &FileTables::line_column},
    {"code_self", "offset", &FileTables::self_offset},
};

struct WideColumn {
  absl::string_view section, name;
  std::vector<uint64_t> FileTables::*values;
};
inline constexpr WideColumn kWideColumns[] = {
    {"frames", "address", &FileTables::address},       {"samples", "time_ns", &FileTables::time_ns},
    {"events", "time_ns", &FileTables::event_time_ns}, {"events", "duration_ns", &FileTables::event_duration_ns},
    {"samples", "weight", &FileTables::weight},        {"code", "address", &FileTables::code_address},
    {"code", "time_ns", &FileTables::code_time_ns},    {"code_self", "weight", &FileTables::self_weight},
};

// The rows of a table.
inline size_t RowsOf(const FileTables& tables, absl::string_view section) {
  if (section == "frames") return tables.name.size();
  if (section == "nodes") return tables.parent.size();
  if (section == "threads") return tables.comm.size();
  if (section == "sources") return tables.file.size();
  if (section == "events") return tables.event_time_ns.size();
  if (section == "code") return tables.code_bytes.size();
  if (section == "code_lines") return tables.line_offset.size();
  if (section == "code_self") return tables.self_offset.size();
  return tables.stack.size();
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_PROFILE_PROFILE_JSON_TABLES_H_
