#include "pipeline/process_ledger.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace clrsampler {

ProcessLedger::Row& ProcessLedger::RowOf(const Process& process) {
  main_loop_.Check();
  Row& row = rows_[process.key];
  if (!row.labelled || row.comm != process.comm) {
    row.labelled = true;
    row.comm = process.comm;
    row.container = process.container;
    const absl::string_view comm =
        process.comm.empty() ? absl::string_view("process") : absl::string_view(process.comm);
    row.label = stacks_.InternLabel(with_pid_ ? absl::StrCat(comm, "-", process.key.tgid) : std::string(comm));
  }
  return row;
}

ProcessLedger::Identity ProcessLedger::Of(ProcessKey key) {
  main_loop_.Check();
  const auto found = rows_.find(key);
  if (found == rows_.end()) return {stacks_.InternLabel("process"), "", ""};
  const Row& row = found->second;
  return {row.label, row.comm, row.container.cgroup.container_id};
}

LabelId ProcessLedger::Count(const Process& process, uint32_t name_sources) {
  main_loop_.Check();
  Row& row = RowOf(process);
  ++row.samples;
  row.name_sources |= name_sources;
  return row.label;
}

void ProcessLedger::SetRuntime(ProcessKey key, std::string version) {
  main_loop_.Check();
  const auto found = rows_.find(key);
  if (found == rows_.end()) return;
  found->second.runtime = std::move(version);
  found->second.runtime_known = true;
}

void ProcessLedger::SetLabels(ProcessKey key, ProcessLabels labels) {
  main_loop_.Check();
  const auto found = rows_.find(key);
  if (found != rows_.end()) found->second.labels = std::move(labels);
}

bool ProcessLedger::has_runtime(ProcessKey key) const {
  const auto found = rows_.find(key);
  return found == rows_.end() || found->second.runtime_known;
}

std::vector<ProcessAccount> ProcessLedger::Accounts() const {
  std::vector<ProcessAccount> accounts;
  for (const auto& [key, row] : rows_) {
    ProcessAccount account;
    account.pid = key.tgid;
    account.comm = row.comm;
    account.runtime = row.runtime;
    account.container = row.container.Label();
    account.container_id = row.container.cgroup.container_id;
    account.pod_uid = row.container.cgroup.pod_uid;
    account.labels = row.labels;
    account.samples = row.samples;
    for (int source = 1; source < kNameSourceCount; ++source) {
      if ((row.name_sources >> source & 1) == 0) continue;
      account.symbol_sources.emplace_back(NameSourceText(static_cast<NameSource>(source)));
    }
    accounts.push_back(std::move(account));
  }
  std::sort(accounts.begin(), accounts.end(), [](const ProcessAccount& a, const ProcessAccount& b) {
    return a.samples != b.samples ? a.samples > b.samples : a.pid < b.pid;
  });
  return accounts;
}

}  // namespace clrsampler
