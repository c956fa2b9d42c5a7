#include "cli/event_buffer_option.h"

#include <CLI/CLI.hpp>

namespace clrsampler {

void DeclareEventBuffer(CLI::App& app, uint32_t& megabytes) {
  app.add_option("--event-buffer", megabytes,
                 "with --source eventpipe: how much the runtime may keep in its own memory until it is taken")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str()
      ->type_name("MB");
}

}  // namespace clrsampler
