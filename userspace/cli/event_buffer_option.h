// --event-buffer, of commands that read the runtime's own event stream.
#ifndef CLRSAMPLER_CLI_EVENT_BUFFER_OPTION_H_
#define CLRSAMPLER_CLI_EVENT_BUFFER_OPTION_H_

#include <cstdint>

namespace CLI {
class App;
}  // namespace CLI

namespace clrsampler {

void DeclareEventBuffer(CLI::App& app, uint32_t& megabytes);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_EVENT_BUFFER_OPTION_H_
