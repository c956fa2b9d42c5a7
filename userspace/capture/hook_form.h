// How a hooked function gives what the hook's event shows. Each form has a BPF program of its own.
#ifndef CLRSAMPLER_CAPTURE_HOOK_FORM_H_
#define CLRSAMPLER_CAPTURE_HOOK_FORM_H_

#include <array>
#include <cstdint>

namespace clrsampler {

// The numbers stand in saved streams.
enum class HookForm : uint8_t {
  kPlain = 0,
  kMember = 1,        // DiagGC: `this` comes before the arguments
  kEntryOnFrame = 2,  // compileMethod is done: CompileForm::kEntryOnFrame (clr/hooks/code_reference.h)
};
inline constexpr std::array kHookForms = {HookForm::kPlain, HookForm::kMember, HookForm::kEntryOnFrame};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CAPTURE_HOOK_FORM_H_
