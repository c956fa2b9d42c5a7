#include "pipeline/run_session.h"

#include <memory>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

namespace clrsampler {

void RunSession::SlowIteration(MonotonicTime now) {
  main_loop_.Check();
  labels_.Update(now, [this](ProcessKey key) { return profile_.ledger().Has(key); });
}

void RunSession::Describe(const Process& process) {
  main_loop_.Check();
  profile_.ledger().SetLabels(process.key, labels_.Of(process.key));
  if (profile_.ledger().has_runtime(process.key)) return;
  const std::optional<DotNetRuntime> runtime = parts_.runtimes.Find(process);
  profile_.ledger().SetRuntime(process.key, runtime.has_value() ? runtime->version.Text() : "");
}

// Functions that were written by their start because their symbols were still on the way.
void RunSession::GiveLateNames() {
  if (parts_.symbol_server == nullptr) return;
  parts_.symbol_server->Finish(parts_.notices);
  absl::flat_hash_map<FrameId, FrameId> names;
  for (const std::unique_ptr<FrameSource>& source : parts_.sources.in_order) {
    if (LateNames* late = source->late_names()) late->AddLateNames(names);
  }
  profile_.ReplaceFrames(names);
  parts_.account.symbol_server = parts_.symbol_server->counters().ByName();
  parts_.account.symbol_server["late_names"] = names.size();
}

void RunSession::Finish() {
  main_loop_.Check();
  GiveLateNames();
  Account& account = parts_.account;
  const StackTable& stacks = profile_.stacks();
  for (StackId id = 0; id < stacks.size(); ++id) {
    for (const FrameId frame : stacks.stack(id).frames) account.CountFrame(parts_.frames.at(frame), stacks.count(id));
  }
  if (account.samples_taken == 0) {
    parts_.notices.Add("no_samples", "",
                       "nothing was sampled: the targets used too little CPU time for a single sample",
                       "sample while the program is under load, for longer, or with a higher --frequency");
  }
  if (profile_.samples().untimed() > 0) {
    parts_.notices.Add("samples_without_time", "",
                       absl::StrCat(profile_.samples().untimed(),
                                    " samples are counted but have no time: the recording is longer than ",
                                    SampleLog::kMaxTimed, " samples"),
                       "record for a shorter time, or at a lower --frequency");
  }
  if (const uint64_t left_out = profile_.samples().links_left_out(); left_out > 0) {
    account.traces["left_out"] = left_out;
    parts_.notices.Add("trace_ids_left_out", "",
                       absl::StrCat(left_out, " samples have no trace and span: a recording keeps ",
                                    SampleLog::kMaxLinks, " spans, and none of samples without time"),
                       "record for a shorter time");
  }
  if (profile_.events().left_out() > 0) {
    parts_.notices.Add(
        "events_left_out", "",
        absl::StrCat(profile_.events().left_out(),
                     " pauses and compilations are not shown over time: there are more than ", EventLog::kMaxEntries),
        "record for a shorter time; clrsampler pauses and clrsampler jit count them all");
  }
  parts_.CountAccount();
  if (parts_.code_log) account.code = parts_.code_log->CountersByName();
  account.processes = profile_.ledger().Accounts();
}

}  // namespace clrsampler
