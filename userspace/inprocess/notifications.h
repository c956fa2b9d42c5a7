// Notifications of the runtime as records of the ring: one function for each slot that says something.
#ifndef CLRSAMPLER_INPROCESS_NOTIFICATIONS_H_
#define CLRSAMPLER_INPROCESS_NOTIFICATIONS_H_

#include "inprocess/profiler_api.h"
#include "inprocess/session.h"

namespace clrsampler {

// Puts them into a table of kCallbackSlots slots.
void FillNotifications(void** table);

// The session that they write into.
Session& TheSession();

}  // namespace clrsampler

#endif  // CLRSAMPLER_INPROCESS_NOTIFICATIONS_H_
