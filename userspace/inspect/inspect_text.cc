#include "inspect/inspect_text.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "inspect/naming_outlook.h"

namespace clrsampler {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kColumns = 9;
using Row = std::array<std::string, kColumns>;

// Quotes are harmless here.
std::string Printable(absl::string_view text) {
  return absl::StrReplaceAll(absl::Utf8SafeCEscape(text), {{"\\'", "'"}, {"\\\"", "\""}});
}

// Names of processes are bytes, not necessarily UTF-8.
std::string Dump(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

std::string OrDash(const std::string& text) { return text.empty() ? "-" : text; }

std::string GcText(const ProcessFacts& facts) {
  return absl::StrCat(GcFlavourText(facts.gc), facts.runtime->standalone_gc ? "+standalone" : "");
}

std::string FormText(const DotNetRuntime& runtime) {
  std::string text(DeploymentFormText(runtime.form));
  if (runtime.kind == RuntimeImageKind::kMono) absl::StrAppend(&text, ",mono");
  if (runtime.bundled && runtime.form == DeploymentForm::kFrameworkDependent) absl::StrAppend(&text, ",bundle");
  if (runtime.bundle_compressed) absl::StrAppend(&text, ",compressed");
  if (runtime.composite.value_or(false)) absl::StrAppend(&text, ",composite");
  return text;
}

Row RowOf(const ProcessFacts& facts) {
  const NamingOutlook outlook = OutlookOf(facts);
  Row row;
  row[0] = absl::StrCat(facts.pid);
  row[1] = Printable(facts.comm);
  row[2] = OrDash(Printable(facts.container.Label()));
  if (facts.runtime.has_value()) {
    row[3] = facts.runtime->version.Text();
    row[4] = FormText(*facts.runtime);
    row[5] =
        absl::StrCat(MachineText(facts.runtime->machine), facts.runtime->libc == LibcFlavour::kMusl ? "-musl" : "");
    row[6] = GcText(facts);
  } else {
    row[3] = row[4] = row[5] = row[6] = "?";
  }
  row[7] = outlook.sources.empty() ? "none" : absl::StrJoin(outlook.sources, ",");
  row[8] = std::string(NamingWordText(outlook.word));
  if (!facts.readable.ok()) absl::StrAppend(&row[8], " (", Printable(facts.readable.message()), ")");
  if (facts.runtime.has_value() && facts.runtime->emulated()) absl::StrAppend(&row[8], " (", outlook.reason, ")");
  return row;
}

Json ProcessJson(const ProcessFacts& facts) {
  const NamingOutlook outlook = OutlookOf(facts);
  const CgroupIdentity& cgroup = facts.container.cgroup;
  Json json = {{"pid", facts.pid}, {"comm", facts.comm}};
  json["readable"] = facts.readable.ok();
  if (!facts.readable.ok()) json["error"] = std::string(facts.readable.message());
  json["container"] = {
      {"label", facts.container.Label()}, {"runtime", std::string(ContainerRuntimeText(cgroup.runtime))},
      {"id", cgroup.container_id},        {"name", facts.container.name},
      {"pod_uid", cgroup.pod_uid},        {"qos", std::string(PodQosText(cgroup.qos))},
      {"service", cgroup.service}};
  if (facts.runtime.has_value()) {
    const DotNetRuntime& runtime = *facts.runtime;
    json["namespace_pid"] = facts.namespace_pid;
    json["executable"] = facts.executable;
    json["labels"] = Json::object();
    facts.labels.ForEach(
        [&](absl::string_view name, const std::string& value) { json["labels"][std::string(name)] = value; });
    json["runtime"] = runtime.version.Text();
    json["runtime_image"] = runtime.mapping.path;
    json["form"] = std::string(DeploymentFormText(runtime.form));
    json["mono"] = runtime.kind == RuntimeImageKind::kMono;
    json["bundled"] = runtime.bundled;
    json["compressed"] = runtime.bundle_compressed;
    if (runtime.composite.has_value()) {
      json["composite"] = *runtime.composite;
    } else {
      json["composite"] = nullptr;
    }
    json["arch"] = std::string(MachineText(runtime.machine));
    json["libc"] = std::string(LibcText(runtime.libc));
    json["gc"] = std::string(GcFlavourText(facts.gc));
    json["standalone_gc"] = runtime.standalone_gc ? runtime.standalone_gc->path : "";
  }
  json["symbol_sources"] = outlook.sources;
  json["profiling"] = std::string(NamingWordText(outlook.word));
  json["reason"] = outlook.reason;
  return json;
}

Json FindingsJson(const Findings& findings) {
  Json json = Json::array();
  for (const Finding& finding : findings) {
    json.push_back({{"level", std::string(FindingLevelText(finding.level))},
                    {"check", finding.check},
                    {"what", finding.what},
                    {"fix", finding.fix}});
  }
  return json;
}

void AppendLines(const Findings& findings, std::string& text) {
  for (const Finding& finding : findings) {
    absl::StrAppend(&text, FindingLevelText(finding.level), "  ", Printable(finding.what));
    if (!finding.fix.empty()) absl::StrAppend(&text, "  fix: ", Printable(finding.fix));
    text += '\n';
  }
}

}  // namespace

std::string ProcessTableText(const ProcessList& list) {
  std::vector<Row> rows = {{"PID", "COMM", "CONTAINER", "RUNTIME", "FORM", "ARCH", "GC", "SOURCES", "PROFILING"}};
  for (const ProcessFacts& facts : list.dotnet) rows.push_back(RowOf(facts));
  std::array<size_t, kColumns> widths{};
  for (const Row& row : rows) {
    for (size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  if (!list.dotnet.empty()) {
    for (const Row& row : rows) {
      // Numbers to the right, as ps has them; no blanks at a line's end.
      text.append(widths[0] - row[0].size(), ' ').append(row[0]);
      for (size_t i = 1; i < kColumns; ++i) {
        text.append(2, ' ').append(row[i]);
        if (i + 1 < kColumns) text.append(widths[i] - row[i].size(), ' ');
      }
      text += '\n';
    }
  }
  absl::StrAppend(&text, list.dotnet.size(), list.dotnet.size() == 1 ? " .NET process, " : " .NET processes, ",
                  list.others, list.others == 1 ? " other" : " others");
  if (list.unreadable != 0)
    absl::StrAppend(&text, ", ", list.unreadable, " that can't be read (", list.how_to_read, ")");
  return text + "\n";
}

std::string ProcessListJson(const ProcessList& list) {
  Json json;
  json["processes"] = Json::array();
  for (const ProcessFacts& facts : list.dotnet) json["processes"].push_back(ProcessJson(facts));
  json["others"] = list.others;
  json["unreadable"] = list.unreadable;
  return Dump(json);
}

std::string DoctorText(const DoctorReport& report) {
  std::string text;
  AppendLines(report.host, text);
  for (const ProcessReport& process : report.processes) {
    absl::StrAppend(&text, "\nprocess ", process.pid, " (", Printable(process.comm), ")\n");
    AppendLines(process.findings, text);
  }
  absl::StrAppend(&text, "\nprofiling will ", report.will_work ? "" : "not ", "work\n");
  return text;
}

std::string DoctorJson(const DoctorReport& report) {
  Json json;
  json["profiling_will_work"] = report.will_work;
  json["host"] = FindingsJson(report.host);
  json["processes"] = Json::array();
  for (const ProcessReport& process : report.processes) {
    json["processes"].push_back(
        {{"pid", process.pid}, {"comm", process.comm}, {"findings", FindingsJson(process.findings)}});
  }
  return Dump(json);
}

}  // namespace clrsampler
