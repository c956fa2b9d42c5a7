// The folder of this host's processes. Code that reads there takes the folder as an argument, since tests have
// processes of their own.
#ifndef CLRSAMPLER_PROCESS_PROC_ROOT_H_
#define CLRSAMPLER_PROCESS_PROC_ROOT_H_

namespace clrsampler {

inline constexpr char kProcRoot[] = "/proc";

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROCESS_PROC_ROOT_H_
