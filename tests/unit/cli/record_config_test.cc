#include "cli/record_config.h"

#include <gmock/gmock.h>

#include <functional>
#include <string>
#include <utility>

#include "cli/event_source_command.h"
#include "status/status.h"

namespace clrsampler {
namespace {

using testing::HasSubstr;

TEST(RecordConfigTest, OptionsOfWaitsNeedWaits) {
  RecordConfig config;
  config.wakers = true;
  EXPECT_THAT(std::string(ToOptions(config).status().message()), HasSubstr("--wakers is for waits"));
  EXPECT_THAT(HintOf(ToOptions(config).status()), HasSubstr("leave --wakers out"));
  config.event = "wall";
  EXPECT_TRUE(ToOptions(config).ok());
  config = RecordConfig();
  config.min_wait = "10us";
  config.event = "alloc";
  EXPECT_THAT(std::string(ToOptions(config).status().message()), HasSubstr("--min-wait is for waits"));
  config.event = "off-cpu";
  EXPECT_TRUE(ToOptions(config).ok());
}

TEST(RecordConfigTest, EventsNeedNoSamples) {
  RecordConfig config;
  config.frequency_hz = 499;
  for (const auto& [event, hz] :
       {std::pair("cpu", 499U), std::pair("wall", 499U), std::pair("off-cpu", 1U), std::pair("alloc", 1U)}) {
    config.event = event;
    EXPECT_EQ(ToOptions(config)->sampling_hz(), hz) << event;
  }
  config.event = "cpu";
  config.view = "jit";
  EXPECT_EQ(ToOptions(config)->sampling_hz(), 1U);
}

TEST(RecordConfigTest, OptionsOfTheEventStreamAndOfPerfMapsNeedThese) {
  RecordConfig config;
  config.event_buffer_megabytes = 7;
  EXPECT_EQ(CheckEventSource(config).message(), "--event-buffer is for --source eventpipe, which is not given");
  config = RecordConfig();
  config.perf_maps.cap = "1MiB";
  EXPECT_EQ(ToOptions(config).status().message(), "--perf-map-cap is for --enable-perf-map, which is not given");
  config.perf_maps.enable = true;
  EXPECT_TRUE(ToOptions(config).ok());
}

TEST(RecordConfigTest, WithoutHooksNothingThatNeedsThem) {
  const std::pair<const char*, std::function<void(RecordConfig&)>> kAsked[] = {
      {"--event alloc", [](RecordConfig& config) { config.event = "alloc"; }},
      {"--event exception", [](RecordConfig& config) { config.event = "exception"; }},
      {"--view pause", [](RecordConfig& config) { config.view = "pause"; }},
      {"--view suspend-delay", [](RecordConfig& config) { config.view = "suspend-delay"; }},
      {"--view jit", [](RecordConfig& config) { config.view = "jit"; }},
      {"--mark-suspension", [](RecordConfig& config) { config.mark_suspension = true; }}};
  for (const auto& [what, ask] : kAsked) {
    RecordConfig config;
    ask(config);
    EXPECT_TRUE(ToOptions(config).ok()) << what;
    config.no_hooks = true;
    const absl::Status status = ToOptions(config).status();
    EXPECT_EQ(status.message(), std::string(what) + " needs probes in the runtime, and --no-hooks plants none");
    EXPECT_EQ(HintOf(status), std::string("leave one of --no-hooks and ") + what + " out");
  }
}

TEST(RecordConfigTest, WithoutHooksNoEventOfARuntimeIsFollowed) {
  RecordConfig config;
  for (const char* event : {"cpu", "off-cpu", "wall"}) {
    config.event = event;
    config.no_hooks = false;
    EXPECT_TRUE(EventsFor(*ToOptions(config)).pauses) << event;
    config.no_hooks = true;
    const RuntimeEvents events = EventsFor(*ToOptions(config));
    EXPECT_FALSE(events.roles || events.pauses || events.resumed || events.compilations || events.allocations ||
                 events.exceptions || events.compilation_stacks)
        << event;
  }
}

TEST(RecordConfigTest, TheEventStreamHasNoOptionsOfProbes) {
  const std::pair<const char*, std::function<void(RecordConfig&)>> kGiven[] = {
      {"--hook-budget", [](RecordConfig& config) { config.hook_budget = 1; }},
      {"--wakers", [](RecordConfig& config) { config.wakers = true; }},
      {"--min-wait", [](RecordConfig& config) { config.min_wait = "10us"; }},
      {"--max-frames", [](RecordConfig& config) { config.max_frames = 10; }},
      {"--symbol-cache", [](RecordConfig& config) { config.symbol_cache = "/tmp"; }},
      {"--perf-map-cap", [](RecordConfig& config) { config.perf_maps.cap = "1MiB"; }}};
  for (const auto& [option, give] : kGiven) {
    RecordConfig config;
    config.source = "eventpipe";
    config.event = "exception";
    EXPECT_TRUE(CheckEventSource(config).ok());
    give(config);
    EXPECT_EQ(CheckEventSource(config).message(), std::string("--source eventpipe has no ") + option);
    EXPECT_EQ(HintOf(CheckEventSource(config)), std::string("leave ") + option + " out");
  }
}

}  // namespace
}  // namespace clrsampler
