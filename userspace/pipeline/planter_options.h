// Options of a run that are about probes.
#ifndef CLRSAMPLER_PIPELINE_PLANTER_OPTIONS_H_
#define CLRSAMPLER_PIPELINE_PLANTER_OPTIONS_H_

#include "pipeline/run_parts.h"
#include "runtime_events/hook_planter.h"

namespace clrsampler {

// `parts` is borrowed by what is returned, and its capture is opened.
HookPlanterOptions PlanterOptionsFor(const RuntimeEvents& events, RunParts& parts);

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_PLANTER_OPTIONS_H_
