#include "pipeline/label_watch.h"

#include <memory>

#include "process/proc_root.h"
#include "process/target_memory.h"

namespace clrsampler {
namespace {

constexpr uint64_t kUpdateNs = 1'000'000'000;

}  // namespace

LabelWatch::LabelWatch(RunParts& parts)
    : parts_(parts),
      reader_(
          [broker = parts.broker](uint32_t pid) -> absl::StatusOr<std::unique_ptr<MemoryReader>> {
            return TargetMemory::Open(kProcRoot, pid, nullptr, broker.get());
          },
          parts.notices) {
  if (parts.options.cri_helper == nullptr) return;
  containers_.emplace(parts.options.cri_helper, parts.options.cri_socket, parts.notices);
}

void LabelWatch::Update(MonotonicTime now, absl::FunctionRef<bool(ProcessKey)> wanted) {
  main_loop_.Check();
  if (parts_.tape != nullptr) return;
  const bool news = containers_ && containers_->Poll(now);
  if (!news && now.ns - updated_.ns < kUpdateNs) return;
  updated_ = now;
  parts_.table.ForEach([&](Process& process) {
    if (process.exited != MonotonicTime::Max() || !wanted(process.key)) return;
    // The control group of a process is read anew when it calls exec, and a container's names do not change.
    if (containers_ && !reader_.HasPlace(process)) {
      reader_.SetPlace(process, containers_->Of(process.container.path, now));
    }
    if (reader_.IsDue(process, now)) reader_.Read(process, parts_.runtimes.Find(process).has_value(), now);
  });
}

}  // namespace clrsampler
