#include "process/label_reader.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "formats/labels/environment_labels.h"
#include "formats/proc/environ_text.h"
#include "formats/proc/maps_text.h"
#include "formats/proc/stat_text.h"
#include "process/maps_mapping.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr size_t kMaxContexts = 8;  // of that name; the specification allows one
// A process that calls itself something else all the time would make a series for each name, wherever labels are kept.
constexpr uint32_t kMaxChanges = 16;
constexpr int kTries = 3;  // to read what the process changes meanwhile
constexpr uint64_t kSoonNs = 1'000'000'000;
constexpr uint64_t kAgainNs = 10'000'000'000;
constexpr uint64_t kSeldomNs = 300'000'000'000;

// Whether the pid still belongs to this process.
bool IsThere(const Process& process) {
  const auto text = process.files.ReadProc("stat", kMaxStatBytes);
  if (!text.ok()) return false;
  const auto stat = ParseStat(*text);
  const uint64_t tick_ns = 1'000'000'000 / static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
  return stat.ok() && (process.started_boot_ns == 0 || stat->start_ticks * tick_ns == process.started_boot_ns);
}

absl::StatusOr<ContextHeader> ReadHeader(MemoryReader& memory, uint64_t address) {
  std::array<std::byte, kContextHeaderBytes> bytes{};
  if (!memory.Read(address, bytes)) return absl::UnavailableError("its header can't be read");
  return ParseContextHeader(bytes);
}

// nullopt: the process has changed it meanwhile.
absl::StatusOr<std::optional<ProcessLabels>> ReadPayload(MemoryReader& memory, uint64_t mapping,
                                                         const ContextHeader& header) {
  std::vector<std::byte> payload(header.payload_bytes);
  const bool read = payload.empty() || memory.Read(header.payload, payload);
  const absl::StatusOr<ContextHeader> after = ReadHeader(memory, mapping);
  RETURN_IF_ERROR(after.status());
  if (after->published_ns != header.published_ns) return std::optional<ProcessLabels>();
  if (!read) return absl::UnavailableError("its payload can't be read");
  absl::StatusOr<ProcessLabels> labels = ParseContextPayload(payload);
  RETURN_IF_ERROR(labels.status());
  return std::optional<ProcessLabels>(*std::move(labels));
}

}  // namespace

bool LabelReader::IsDue(const Process& process, MonotonicTime now) const {
  const auto found = known_.find(process.key);
  return found == known_.end() || found->second.exec_count != process.exec_count || now >= found->second.next;
}

void LabelReader::Read(const Process& process, bool is_dotnet, MonotonicTime now) {
  main_loop_.Check();
  if (!IsDue(process, now)) return;
  Known& known = known_[process.key];
  if (known.exec_count != process.exec_count) {
    ProcessLabels place = std::move(known.place);
    known = Known();
    known.place = std::move(place);
  }
  known.exec_count = process.exec_count;
  if (is_dotnet) Read(process, known);
  known.wait_ns = known.mapping != 0 ? kAgainNs : std::clamp(known.wait_ns * 2, kSoonNs, kSeldomNs);
  known.next = {now.ns + known.wait_ns};
}

ProcessLabels LabelReader::Of(ProcessKey process) const {
  const auto found = known_.find(process);
  if (found == known_.end()) return {};
  const Known& known = found->second;
  ProcessLabels claimed = known.context;
  claimed.FillFrom(known.environment);
  if (known.place.empty()) return claimed;
  claimed.DropPlace();
  ProcessLabels labels = known.place;
  labels.FillFrom(claimed);
  return labels;
}

void LabelReader::SetPlace(const Process& process, const ProcessLabels& place) {
  main_loop_.Check();
  auto found = known_.find(process.key);
  if (found == known_.end()) {
    if (place.empty()) return;
    found = known_.emplace(process.key, Known{.exec_count = process.exec_count}).first;
  }
  found->second.place = place;
  found->second.place_exec_count = process.exec_count;
}

bool LabelReader::HasPlace(const Process& process) const {
  const auto found = known_.find(process.key);
  return found != known_.end() && !found->second.place.empty() && found->second.place_exec_count == process.exec_count;
}

void LabelReader::Read(const Process& process, Known& known) {
  absl::StatusOr<std::unique_ptr<MemoryReader>> memory = open_(process.key.tgid);
  Known read = known;
  if (!read.environment_read) {
    const auto environment = process.files.ReadProc("environ", kMaxEnvironmentBytes);
    if (environment.ok()) read.environment = EnvironmentLabels(*environment);
    read.environment_read = true;
  }
  absl::Status context;
  if (memory.ok()) context = ReadContext(process, **memory, read);
  // The text that was read may be that of the pid's next owner.
  if (!IsThere(process)) return;
  if (!process.container.cgroup.in_container()) {
    read.environment.DropPlace();
    read.context.DropPlace();
  }
  known = std::move(read);
  if (context.ok()) return;
  notices_.Add("process_context", absl::StrCat(process.key.tgid),
               absl::StrCat("the process context of process ", process.key.tgid, " (", process.comm,
                            ") is not used: ", context.message()),
               "its labels are those of its environment; see docs/labels.md for what is read");
}

absl::Status LabelReader::ReadContext(const Process& process, MemoryReader& memory, Known& known) {
  for (int i = 0; i < kTries; ++i) {
    absl::StatusOr<std::optional<Found>> found = Locate(process, memory, known.mapping);
    if (!found.ok() || !found->has_value()) {
      known.mapping = 0;
      known.published_ns = 0;
      known.context = ProcessLabels();
      return found.status();
    }
    const auto& [mapping, header] = **found;
    const bool is_same = known.mapping == mapping && known.published_ns == header.published_ns;
    known.mapping = mapping;
    if (header.published_ns == 0) continue;
    if (is_same) return absl::OkStatus();
    if (++known.changes > kMaxChanges) return absl::ResourceExhaustedError("it has changed too often");
    const absl::StatusOr<std::optional<ProcessLabels>> labels = ReadPayload(memory, mapping, header);
    if (labels.ok() && !labels->has_value()) continue;
    known.published_ns = header.published_ns;  // one that is damaged is not read again and again
    known.context = labels.ok() ? **labels : ProcessLabels();
    return labels.status();
  }
  return absl::OkStatus();  // it changes all the time: what is known stays until the next look
}

absl::StatusOr<std::optional<LabelReader::Found>> LabelReader::Locate(const Process& process, MemoryReader& memory,
                                                                      uint64_t mapping) {
  if (mapping != 0) {
    if (const auto header = ReadHeader(memory, mapping); header.ok()) return Found{mapping, *header};
  }
  const auto text = process.files.ReadProc("maps", kMaxMapsBytes);
  if (!text.ok()) return std::optional<Found>();
  absl::Status failure;
  size_t tried = 0;
  for (const absl::string_view line : absl::StrSplit(*text, '\n')) {
    if (!absl::StrContains(line, "OTEL_CTX")) continue;
    const std::optional<MapsLine> parsed = ParseMapsLine(line);
    if (!parsed || !IsContextMapping(parsed->path) || ++tried > kMaxContexts) continue;
    const auto header = ReadHeader(memory, parsed->start);
    if (header.ok()) return Found{parsed->start, *header};
    failure.Update(header.status());
  }
  if (!failure.ok()) return failure;
  return std::optional<Found>();
}

}  // namespace clrsampler
