// Births, programs, mappings and deaths of processes, as the kernel tells them, applied to the table of processes.
#ifndef CLRSAMPLER_PIPELINE_PROCESS_EVENTS_H_
#define CLRSAMPLER_PIPELINE_PROCESS_EVENTS_H_

#include <optional>

#include "capture/side_band_parser.h"
#include "os/clock.h"
#include "process/process.h"
#include "process/process_table.h"

namespace clrsampler {

// The mapping that an event of kind kMmap tells of.
Mapping MappingOf(const SideBandEvent& event);

// The process that runs another program from now on; nullopt: none does. The clock is read where events were lost.
std::optional<ProcessKey> ApplyToTable(const SideBandEvent& event, const Clock& clock, ProcessTable& table);

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_PROCESS_EVENTS_H_
