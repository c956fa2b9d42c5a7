// Finds the processes of the host that look as if they ran .NET. It is a hint, cheap and by words in their maps, so
// that they can be read before the first sample. A process that is missed is found by a sample.
#ifndef CLRSAMPLER_PIPELINE_DOTNET_HINT_H_
#define CLRSAMPLER_PIPELINE_DOTNET_HINT_H_

#include <cstdint>
#include <string>
#include <vector>

namespace clrsampler {

class FileBroker;

// `proc_root` is "/proc" outside tests. `broker` reads the texts, which a process can delay; nullptr: this process
// does.
std::vector<uint32_t> ProcessesLikeDotNet(const std::string& proc_root, FileBroker* broker);

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_DOTNET_HINT_H_
