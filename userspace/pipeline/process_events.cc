#include "pipeline/process_events.h"

namespace clrsampler {

Mapping MappingOf(const SideBandEvent& event) {
  Mapping mapping;
  mapping.start = event.start;
  mapping.end = event.start + event.length;
  mapping.file_offset = event.page_offset;
  mapping.device_major = event.device_major;
  mapping.device_minor = event.device_minor;
  mapping.inode = event.inode;
  mapping.path = event.path;
  mapping.kind = ClassifyMapping(mapping.path, mapping.inode);
  return mapping;
}

std::optional<ProcessKey> ApplyToTable(const SideBandEvent& event, const Clock& clock, ProcessTable& table) {
  switch (event.kind) {
    case SideBandKind::kFork:
      table.OnFork(event.pid, event.parent_pid, event.time);
      break;
    case SideBandKind::kComm:
      if (event.exec) {
        if (table.OnExec(event.pid, event.comm, event.time)) return table.Find(event.pid)->key;
      } else if (event.pid == event.tid) {
        table.OnComm(event.pid, event.comm, event.time);
      }
      break;
    case SideBandKind::kMmap:
      table.OnMapping(event.pid, MappingOf(event), event.time);
      break;
    case SideBandKind::kExit:
      if (event.pid == event.tid) table.OnExit(event.pid, event.time);
      break;
    case SideBandKind::kLost:
      table.OnEventsLost(clock.Now());
      break;
  }
  return std::nullopt;
}

}  // namespace clrsampler
