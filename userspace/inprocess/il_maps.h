// The runtime's map of a method's code: which machine code was made from which place in IL.
#ifndef CLRSAMPLER_INPROCESS_IL_MAPS_H_
#define CLRSAMPLER_INPROCESS_IL_MAPS_H_

#include "inprocess/profiler_api.h"
#include "inprocess/session.h"

namespace clrsampler {

// A record for each piece of machine code that there is of the method, where the session wants them. Not for methods
// that were made at run time: the runtime has no maps of them.
void SendILMaps(Session& session, RuntimeId function);

// The maps of all methods that were compiled so far. The walk over them ends early where a module is unloaded
// meanwhile. The methods that it has not come to are counted.
void SendAllILMaps(Session& session);

// The methods of a module are about to go: no walk touches them from the return on. It waits for the method at hand.
void EndWalkOfILMaps();

}  // namespace clrsampler

#endif  // CLRSAMPLER_INPROCESS_IL_MAPS_H_
