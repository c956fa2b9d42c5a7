// Keeps the labels of a run's processes: when they are looked at, and for how long they are known.
#ifndef CLRSAMPLER_PIPELINE_LABEL_WATCH_H_
#define CLRSAMPLER_PIPELINE_LABEL_WATCH_H_

#include <optional>

#include "absl/functional/function_ref.h"
#include "container_runtime/container_names.h"
#include "formats/labels/process_labels.h"
#include "os/clock.h"
#include "pipeline/run_parts.h"
#include "process/label_reader.h"
#include "process/process_key.h"
#include "status/thread_checker.h"

namespace clrsampler {

// Main loop only. Borrows the parts. Does nothing where a tape records or plays.
class LabelWatch {
 public:
  explicit LabelWatch(RunParts& parts);

  // Some times a second. Looks at processes that `wanted` has, once a second and when a container has got its name.
  void Update(MonotonicTime now, absl::FunctionRef<bool(ProcessKey)> wanted);
  ProcessLabels Of(ProcessKey process) const { return reader_.Of(process); }
  void Forget(ProcessKey process) { reader_.Forget(process); }

 private:
  RunParts& parts_;
  LabelReader reader_;
  std::optional<ContainerNames> containers_;  // nullopt: nobody is asked
  MonotonicTime updated_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_LABEL_WATCH_H_
