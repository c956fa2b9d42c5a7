// Keeps all that the account says of each process after the process itself is gone.
#ifndef CLRSAMPLER_PIPELINE_PROCESS_LEDGER_H_
#define CLRSAMPLER_PIPELINE_PROCESS_LEDGER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "formats/labels/process_labels.h"
#include "process/container.h"
#include "process/process.h"
#include "profile/account.h"
#include "profile/stack_table.h"
#include "status/thread_checker.h"

namespace clrsampler {

// Main loop only.
class ProcessLedger {
 public:
  // `with_pid`: root frames read comm-PID, as in a whole-host run.
  ProcessLedger(StackTable& stacks, bool with_pid) : stacks_(stacks), with_pid_(with_pid) {}

  // One sample of the process; gives the root label of its stack.
  LabelId Count(const Process& process, uint32_t name_sources);
  // The same label, for what is no sample.
  LabelId LabelOf(const Process& process) { return RowOf(process).label; }
  // The identity of a process that may have ended; one without a sample has no name.
  struct Identity {
    LabelId label = 0;
    std::string comm;
    std::string container_id;
  };
  Identity Of(ProcessKey key);
  void SetRuntime(ProcessKey key, std::string version);
  bool Has(ProcessKey key) const { return rows_.contains(key); }
  void SetLabels(ProcessKey key, ProcessLabels labels);
  bool has_runtime(ProcessKey key) const;

  // Most samples first.
  std::vector<ProcessAccount> Accounts() const;

 private:
  struct Row {
    std::string comm;
    Container container;
    std::string runtime;
    ProcessLabels labels;
    bool runtime_known = false;
    bool labelled = false;
    uint32_t name_sources = 0;
    uint64_t samples = 0;
    LabelId label = 0;
  };
  Row& RowOf(const Process& process);

  StackTable& stacks_;
  bool with_pid_;
  absl::flat_hash_map<ProcessKey, Row> rows_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_PROCESS_LEDGER_H_
