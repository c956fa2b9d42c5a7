// The runtime's map of a method's code: which machine code was made from which place in IL.
#ifndef CLRSAMPLER_INPROCESS_IL_MAPS_H_
#define CLRSAMPLER_INPROCESS_IL_MAPS_H_

#include "inprocess/profiler_api.h"
#include "inprocess/session.h"

namespace clrsampler {

// A record for each piece of machine code that there is of the method, where the session wants them. Not for methods
// that were made at run time: the runtime has no maps of them.
void SendILMaps(Session& session, RuntimeId function);

// The maps of all methods that were compiled so far.
void SendAllILMaps(Session& session);

}  // namespace clrsampler

#endif  // CLRSAMPLER_INPROCESS_IL_MAPS_H_
