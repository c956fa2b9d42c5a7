#include "clr/perf_map/lease_record.h"

#include <algorithm>
#include <functional>
#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace clrsampler {
namespace {

constexpr absl::string_view kFormat = "clrsampler-lease 1";

template <typename T>
bool Number(absl::string_view text, T& value) {
  return absl::SimpleAtoi(text, &value);
}

bool PlainPath(absl::string_view path) {
  return !path.empty() && path[0] == '/' &&
         std::none_of(path.begin(), path.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; });
}

}  // namespace

std::string EncodeLeaseRecord(const LeaseRecord& r) {
  std::string text = absl::StrCat(kFormat, "\nagent ", r.agent_pid, " ", r.agent_start_ticks, "\nboot ", r.boot_id,
                                  "\nagent_pid_namespace ", r.agent_pid_namespace);
  absl::StrAppend(&text, "\ntarget ", r.target.tgid, " ", r.target.start_ticks, " ", r.target.namespace_pid,
                  "\nnamespaces ", r.pid_namespace, " ", r.mount_namespace, "\nroot ", r.root_device, " ", r.root_inode,
                  "\nowner ", r.owner_uid, "\ncreated ", r.created_realtime_ns, "\ndirectory ", r.directory, "\n");
  for (const LeasedFile& file : r.files) absl::StrAppend(&text, EncodeLeasedFile(file));
  return text;
}

std::string EncodeLeasedFile(const LeasedFile& file) {
  return absl::StrCat("file ", file.device, " ", file.inode, " ", file.name, "\n");
}

absl::StatusOr<LeaseRecord> ParseLeaseRecord(absl::string_view text) {
  std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  lines.pop_back();  // empty, or a line whose writer was killed
  if (lines.empty() || lines[0] != kFormat) return absl::DataLossError("not a lease of this format");
  LeaseRecord r;
  std::map<absl::string_view, bool> missing{{"agent", true},  {"boot", true},    {"agent_pid_namespace", true},
                                            {"target", true}, {"root", true},    {"namespaces", true},
                                            {"owner", true},  {"created", true}, {"directory", true}};
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::pair<absl::string_view, absl::string_view> pair = absl::StrSplit(lines[i], absl::MaxSplits(' ', 1));
    const auto& [key, value] = pair;
    const std::vector<absl::string_view> f = absl::StrSplit(value, ' ');
    bool good = false;
    if (key == "agent") good = f.size() == 2 && Number(f[0], r.agent_pid) && Number(f[1], r.agent_start_ticks);
    if (key == "boot") {
      r.boot_id = std::string(value);
      good = true;
    }
    if (key == "agent_pid_namespace") good = Number(value, r.agent_pid_namespace);
    if (key == "target") {
      good = f.size() == 3 && Number(f[0], r.target.tgid) && Number(f[1], r.target.start_ticks) &&
             Number(f[2], r.target.namespace_pid) && r.target.tgid != 0 && r.target.namespace_pid != 0;
    }
    if (key == "namespaces") {
      good = f.size() == 2 && Number(f[0], r.pid_namespace) && Number(f[1], r.mount_namespace);
    }
    if (key == "root") good = f.size() == 2 && Number(f[0], r.root_device) && Number(f[1], r.root_inode);
    if (key == "owner") good = Number(value, r.owner_uid);
    if (key == "created") good = Number(value, r.created_realtime_ns);
    if (key == "directory") {
      r.directory = std::string(value);
      good = PlainPath(value);
    }
    if (key == "file") {
      LeasedFile file;
      good = f.size() == 3 && Number(f[0], file.device) && Number(f[1], file.inode);
      if (good) {
        file.name = std::string(f[2]);
        r.files.push_back(std::move(file));
      }
    }
    if (!good) return absl::DataLossError(absl::StrCat("a lease with the line \"", lines[i], "\""));
    if (const auto found = missing.find(key); found != missing.end()) found->second = false;
  }
  for (const auto& [key, is_missing] : missing) {
    if (is_missing) return absl::DataLossError(absl::StrCat("a lease without ", key));
  }
  // The target is known now, wherever its line stands.
  const std::vector<std::string> names = PerfMapFileNames(r.target.namespace_pid);
  for (const LeasedFile& file : r.files) {
    if (std::find(names.begin(), names.end(), file.name) == names.end()) {
      return absl::DataLossError(absl::StrCat("a lease with the file ", file.name, ", which is none of its target's"));
    }
  }
  return r;
}

std::vector<std::string> PerfMapFileNames(uint32_t namespace_pid) {
  return {absl::StrCat("perf-", namespace_pid, ".map"), absl::StrCat("perfinfo-", namespace_pid, ".map")};
}

}  // namespace clrsampler
