// Where a hook is planted, and how the function gives what the hook's event shows. Each form has a BPF program of its
// own.
#ifndef CLRSAMPLER_CAPTURE_HOOK_FORM_H_
#define CLRSAMPLER_CAPTURE_HOOK_FORM_H_

#include <array>
#include <cstdint>

#include "clrsampler/wire.h"

namespace clrsampler {

// The numbers stand in saved streams.
enum class HookForm : uint8_t {
  kPlain = 0,
  kMember = 1,        // DiagGC: `this` comes before the arguments
  kEntryOnFrame = 2,  // compileMethod is done: CompileForm::kEntryOnFrame (clr/hooks/code_reference.h)
  kInside = 3,      // allocations: inside of a function; the probe's cookie says where the facts are (enum wire_place)
  kNoted = 4,       // SuspendEE: only noted, for the types of allocated objects
  kCrawlFrame = 5,  // exceptions of .NET 8: the first argument is a frame, and not where frames are looked for
};
inline constexpr std::array kHookForms = {HookForm::kPlain,  HookForm::kMember, HookForm::kEntryOnFrame,
                                          HookForm::kInside, HookForm::kNoted,  HookForm::kCrawlFrame};

struct HookPlace {
  wire_hook hook;
  HookForm form;
  uint64_t offset;      // in the file
  uint64_t cookie = 0;  // of HookForm::kInside
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CAPTURE_HOOK_FORM_H_
