// Any bytes as each of the texts of /proc; the first byte chooses which. Properties: what comes out keeps the parser's
// promises, and joining two texts at a line's end gives the lines of both.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "formats/proc/cgroup_identity.h"
#include "formats/proc/cgroup_text.h"
#include "formats/proc/cpu_list_text.h"
#include "formats/proc/environ_text.h"
#include "formats/proc/kallsyms_text.h"
#include "formats/proc/maps_text.h"
#include "formats/proc/proc_stat_text.h"
#include "formats/proc/stat_text.h"
#include "formats/proc/status_text.h"

namespace {

using namespace clrsampler;

void Require(bool holds) {
  if (!holds) __builtin_trap();
}

size_t CountKallsyms(absl::string_view text) {
  size_t lines = 0;
  ForEachKallsymsLine(text, [&](const KallsymsLine& line) {
    Require(!line.name.empty());
    Require(line.name.data() >= text.data() && line.name.data() + line.name.size() <= text.data() + text.size());
    ++lines;
  });
  return lines;
}

// A label is short and harmless, whatever the path held; a parent directory can't add to it.
void CheckIdentity(absl::string_view path) {
  const CgroupIdentity identity = IdentifyCgroup(path);
  for (const absl::string_view text : {absl::string_view(identity.container_id), absl::string_view(identity.pod_uid),
                                       absl::string_view(identity.service)}) {
    Require(text.size() <= 255);
    for (const char c : text) Require((c >= '-' && c <= 'z' && c != '/' && c != '\\') || c == '-');
  }
  Require(identity.service.empty() || !identity.in_container());
  Require((identity.runtime == ContainerRuntime::kNone) == identity.container_id.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const absl::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t newline = text.find('\n');
  const absl::string_view head = text.substr(0, newline == absl::string_view::npos ? 0 : newline + 1);
  const absl::string_view tail = text.substr(head.size());
  switch (data[0] % 8) {
    case 0: {
      const MapsText whole = ParseMaps(text);
      for (const MapsLine& line : whole.lines) Require(line.start < line.end);
      Require(whole.lines.size() == ParseMaps(head).lines.size() + ParseMaps(tail).lines.size());
      break;
    }
    case 1: {
      const auto status = ParseStatus(text);
      if (status.ok()) Require(status->namespace_pids.size() <= 33 && status->namespace_tgids.size() <= 33);
      break;
    }
    case 2: {
      const auto stat = ParseStat(text);
      if (stat.ok()) Require(stat->comm.size() < text.size());
      break;
    }
    case 3: {
      const auto cpus = ParseCpuList(text);
      if (!cpus.ok()) break;
      Require(cpus->size() <= kCpuLimit);
      for (size_t i = 1; i < cpus->size(); ++i) Require((*cpus)[i - 1] < (*cpus)[i]);
      break;
    }
    case 4:
      CheckIdentity(CgroupPath(ParseCgroup(text)));
      CheckIdentity(text);
      break;
    case 5:
      (void)ParseProcStat(text);
      break;
    case 7: {
      const auto value = EnvironmentValue(text, "A");
      if (value) Require(value->data() >= text.data() && value->data() + value->size() <= text.data() + text.size());
      (void)RuntimeNumber(text, "B");
      break;
    }
    case 6:
      Require(CountKallsyms(text) == CountKallsyms(head) + CountKallsyms(tail));
      break;
  }
  return 0;
}
