#include "pipeline/pool_watch.h"

namespace clrsampler {

PoolWatch::PoolWatch(uint32_t pid, FileBroker* files)
    : pid_(pid),
      table_("/proc", clock_, nullptr, files),
      runtimes_(images_, RuntimeDiscovery::CacheBy::kFile),
      memory_({}, runtimes_, images_, frames_, notices_, clock_) {}

std::optional<PoolState> PoolWatch::Read() {
  main_loop_.Check();
  if (reader_ == nullptr) {
    Process& process = table_.FindOrScan(pid_, 0);
    if (!memory_.Try(process).ok()) return std::nullopt;
    RuntimeMemory* const runtime = memory_.RuntimeOf(process.key);
    if (runtime == nullptr) return std::nullopt;
    reader_ = std::make_unique<PoolReader>(*runtime);
  }
  return reader_->Read();
}

}  // namespace clrsampler
