#include "pipeline/expected_samples.h"

#include <algorithm>
#include <utility>

#include "capture/sampling_period.h"

namespace clrsampler {

ExpectedSamples::ExpectedSamples(uint32_t frequency_hz, ProcessClock process_cpu_ns)
    : process_cpu_ns_(std::move(process_cpu_ns)), frequency_hz_(frequency_hz) {}

void ExpectedSamples::StartHost() {
  main_loop_.Check();
  host_ = true;
  host_reading_.first_ns = host_reading_.last_ns;
}

void ExpectedSamples::SetHostBusyNs(uint64_t busy_ns) {
  main_loop_.Check();
  host_reading_.last_ns = std::max(host_reading_.last_ns, busy_ns);
}

void ExpectedSamples::StartProcess(uint32_t pid, bool from_birth) {
  main_loop_.Check();
  Reading reading;
  reading.last_ns = process_cpu_ns_(pid).value_or(0);
  reading.first_ns = from_birth ? 0 : reading.last_ns;
  processes_.emplace(pid, reading);
}

void ExpectedSamples::EndProcess(uint32_t pid) {
  main_loop_.Check();
  const auto found = processes_.find(pid);
  if (found == processes_.end()) return;
  // It may still be there as a zombie, with all that it used.
  Reading& reading = found->second;
  reading.last_ns = std::max(reading.last_ns, process_cpu_ns_(pid).value_or(0));
  ended_ns_ += reading.last_ns - reading.first_ns;
  processes_.erase(found);
}

void ExpectedSamples::Update() {
  main_loop_.Check();
  for (auto& [pid, reading] : processes_) {
    // A smaller reading is another process that got the pid.
    reading.last_ns = std::max(reading.last_ns, process_cpu_ns_(pid).value_or(0));
  }
}

void ExpectedSamples::SetFrequency(uint32_t frequency_hz) {
  main_loop_.Check();
  before_ = samples();
  frequency_hz_ = frequency_hz;
  host_reading_.first_ns = host_reading_.last_ns;
  for (auto& [pid, reading] : processes_) reading.first_ns = reading.last_ns;
  ended_ns_ = 0;
}

uint64_t ExpectedSamples::samples() const {
  uint64_t ns = host_ ? host_reading_.last_ns - host_reading_.first_ns : 0;
  ns += ended_ns_;
  for (const auto& [pid, reading] : processes_) ns += reading.last_ns - reading.first_ns;
  ns = std::max(ns, child_cpu_ns_);
  return before_ + ns / SamplingPeriodNs(frequency_hz_);
}

}  // namespace clrsampler
