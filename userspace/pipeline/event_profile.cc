#include "pipeline/event_profile.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "clr/memory/memory_methods.h"
#include "clr/r2r_methods.h"
#include "formats/names/frame_text.h"
#include "os/own_usage.h"
#include "pipeline/stack_symbolizer.h"
#include "symbols/native_lines/native_lines.h"

namespace clrsampler {

EventProfile::EventProfile(const EventProfileOptions& options)
    : options_(options), stacks_(options.stacks), ledger_(table_, /*with_pid=*/false) {}

void EventProfile::Add(const ClrEventRecord& record) {
  main_loop_.Check();
  if (record.event.kind == ClrEventKind::kThreadBlockedMonitor) {
    Name(record);
    return waits_.Began(record.tid, {record.time_ns}, stack_);
  }
  const std::optional<CountedEvent> counted = CountEvent(options_.view, record.event);
  if (!counted) return;
  if (options_.view == ProfileView::kContention) {
    stack_ = waits_.Ended(record.tid, {record.time_ns}, counted->weight);
  } else {
    Name(record);
  }
  Count(record, *counted);
}

void EventProfile::Name(const ClrEventRecord& record) {
  const std::span<const FrameId> named = stacks_.Name(record.stack, {record.time_ns});
  stack_.assign(named.begin(), named.end());
  while (!stack_.empty() && IsEventMachinery(options_.view, frames().at(stack_.back()))) stack_.pop_back();
}

void EventProfile::Count(const ClrEventRecord& record, const CountedEvent& counted) {
  if (stack_.empty()) {
    stack_.push_back(Mark("[stack not taken]"));
    ++without_stack_;
  }
  ++(frames().at(stack_.front()).text == kDeeperThanLimit ? account_.stacks_truncated : account_.stacks_complete);
  if (!counted.type.empty()) stack_.push_back(TypeFrame(counted.type));
  BoundStack(ledger_.LabelOf(stacks_.process()), !counted.type.empty());
  uint32_t sources = 0;
  for (const FrameId frame : stack_) {
    sources |= 1u << static_cast<unsigned>(frames().at(frame).source);
    account_.CountFrame(frames().at(frame), 1);
  }
  const StackId stack = table_.Intern(ledger_.Count(stacks_.process(), sources), stack_);
  table_.Add(stack, counted.weight);
  ++account_.samples_taken;
  ++account_.samples_written;
  if (options_.keep_samples) KeepSample(record, stack, counted.weight);
}

void EventProfile::BoundStack(LabelId label, bool has_type) {
  if (table_.size() < kMaxStacks || table_.Has(label, stack_)) return;
  ++stacks_left_out_;
  const FrameId type = stack_.back();
  stack_ = {Mark("[stack of a program with too many]")};
  if (has_type) stack_.push_back(type);
}

void EventProfile::KeepSample(const ClrEventRecord& record, StackId stack, uint64_t weight) {
  const Process& process = stacks_.process();
  SampleLog::Thread thread{process.key.tgid, static_cast<uint32_t>(record.tid), process.comm, "",
                           process.container.cgroup.container_id};
  if (threads_.size() < kMaxThreads) threads_.insert(record.tid);
  if (!threads_.contains(record.tid)) {
    ++threads_left_out_;
    thread.tid = 0;
    thread.name = "[thread of a program with too many]";
  }
  samples_.Add(thread, {record.time_ns}, stack, SampleState::kNone, weight);
}

FrameId EventProfile::TypeFrame(absl::string_view type) {
  if (const auto found = types_.find(type); found != types_.end()) return found->second;
  if (types_.size() >= kMaxTypes) return Mark("[type of a program with too many]");
  const FrameId frame = stacks_.frames().Intern(
      Frame{FrameKind::kType, NameSource::kRuntimeEvent, TypeNameText(type, options_.stacks.names), "", ""});
  types_.emplace(type, frame);
  return frame;
}

FrameId EventProfile::Mark(absl::string_view text) {
  return stacks_.frames().Intern(Frame{FrameKind::kMark, NameSource::kNone, std::string(text), "", ""});
}

void EventProfile::Finish(const EventWatchResult& result) {
  main_loop_.Check();
  account_.duration_seconds = static_cast<double>(stacks_.clock().Now().ns - began_.ns) / 1e9;
  account_.events = {{"counted", account_.samples_written},
                     {"lost", result.lost},
                     {"damaged", result.damaged},
                     {"unsorted", result.unsorted},
                     {"not_taken", result.not_taken},
                     {"without_stack", without_stack_},
                     {"stacks_left_out", stacks_left_out_},
                     {"threads_left_out", threads_left_out_},
                     {"broke_off", result.broke_off ? 1 : 0},
                     {"failed", result.ended.ok() ? 0 : 1}};
  ledger_.SetRuntime(stacks_.process().key, stacks_.RuntimeVersion());
  account_.processes = ledger_.Accounts();
  CountSources();
  SayWhatIsMissing(result);
  account_.notice_counts = stacks_.notices().counts();
  account_.notices = stacks_.notices().TakeKept();
  account_.self_cpu_seconds = static_cast<double>(OwnCpuMicroseconds()) / 1e6;
  account_.self_peak_rss_bytes = OwnPeakResidentBytes();
}

void EventProfile::CountSources() {
  const Sources& sources = stacks_.sources();
  if (sources.memory != nullptr) account_.memory = sources.memory->counters().ByName();
  if (sources.precompiled != nullptr) account_.memory.merge(sources.precompiled->memory_counters().ByName());
  if (sources.native_lines != nullptr) account_.native_lines = sources.native_lines->counters().ByName();
  if (sources.pdbs == nullptr) return;
  account_.pdbs = sources.pdbs->counters().ByName();
  account_.without_pdb = {sources.pdbs->without().begin(), sources.pdbs->without().end()};
}

void EventProfile::SayWhatIsMissing(const EventWatchResult& result) {
  Notices& notices = stacks_.notices();
  if (result.lost > 0) {
    notices.Add("events_lost", "",
                absl::StrCat(result.lost, " events were lost, since the runtime's buffer of ",
                             options_.buffer_megabytes, " MB was full"),
                "give more room with --event-buffer");
  }
  if (result.damaged > 0) {
    notices.Add("events_damaged", "",
                absl::StrCat(result.damaged, " events were shorter than their fields and left out"));
  }
  if (result.not_taken > 0) {
    notices.Add("events_not_taken", "",
                absl::StrCat(result.not_taken, " events were not taken, since they came too long after the end"),
                "record for a shorter time");
  }
  if (stacks_left_out_ > 0) {
    notices.Add("event_stacks_left_out", "",
                absl::StrCat(stacks_left_out_, " events have no stack, since there are more than ", kMaxStacks,
                             " different ones"),
                "record for a shorter time");
  }
  if (threads_left_out_ > 0) {
    notices.Add("event_threads_left_out", "",
                absl::StrCat(threads_left_out_, " events have no thread, since there are more than ", kMaxThreads),
                "record for a shorter time");
  }
  if (result.broke_off) {
    notices.Add("events_broke_off", "", "the process ended before its last events had come");
  }
  if (samples_.untimed() > 0) {
    notices.Add("samples_without_time", "",
                absl::StrCat(samples_.untimed(), " events are counted but have no time: there are more than ",
                             SampleLog::kMaxTimed),
                "record for a shorter time");
  }
}

}  // namespace clrsampler
