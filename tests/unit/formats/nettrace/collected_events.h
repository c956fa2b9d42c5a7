// Receives the records of a stream and keeps them.
#ifndef CLRSAMPLER_TESTS_UNIT_FORMATS_NETTRACE_COLLECTED_EVENTS_H_
#define CLRSAMPLER_TESTS_UNIT_FORMATS_NETTRACE_COLLECTED_EVENTS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "formats/byte_reader.h"
#include "formats/nettrace/nettrace_records.h"

namespace clrsampler {

struct CollectedEvent {
  NettraceEvent event;  // its spans are not valid any more
  std::string payload;
  std::vector<uint64_t> stack;
};

class CollectedEvents : public NettraceSink {
 public:
  void OnStart(const NettraceStart& start) override { starts.push_back(start); }
  void OnEvent(const NettraceEvent& event) override {
    events.push_back({event, std::string(AsText(event.payload)), {event.stack.begin(), event.stack.end()}});
  }
  void OnLost(uint64_t capture_thread, uint64_t count) override { lost.emplace_back(capture_thread, count); }
  void OnSequencePoint(uint64_t ticks) override { points.push_back(ticks); }

  std::vector<uint64_t> Ticks() const {
    std::vector<uint64_t> all;
    for (const CollectedEvent& one : events) all.push_back(one.event.ticks);
    return all;
  }

  std::vector<NettraceStart> starts;
  std::vector<CollectedEvent> events;
  std::vector<std::pair<uint64_t, uint64_t>> lost;
  std::vector<uint64_t> points;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_TESTS_UNIT_FORMATS_NETTRACE_COLLECTED_EVENTS_H_
