#include "profile/run_model.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "profile/model_sources.h"
#include "profile/stack_importer.h"

namespace clrsampler {
namespace {

void AddCode(const CodeLog::Entry& entry, MonotonicTime began, StackImporter& importer, ProfileModelBuilder& builder) {
  ModelCode code;
  code.frame = importer.Frame(entry.frame);
  code.pid = entry.pid;
  code.machine = entry.code.machine == ElfMachine::kArm64 ? CodeMachine::kArm64 : CodeMachine::kX64;
  code.address = entry.code.start;
  code.time_ns = entry.met.ns - std::min(entry.met.ns, began.ns);
  code.bytes = *entry.code.bytes;
  const std::vector<CodeLine> lines = entry.code.lines ? entry.code.lines() : std::vector<CodeLine>();
  for (const CodeLine& line : lines) {
    if (line.offset >= code.bytes.size()) break;  // of a cold part, or of what lies behind the code
    const SourcePlace place = line.place.value_or(SourcePlace());
    code.lines.push_back({line.offset, builder.String(place.file), place.line, place.column});
  }
  for (const CodeUnwind& part : entry.code.unwind) code.unwind.push_back({part.begin, part.end, part.bytes});
  for (const auto& [offset, samples] : entry.self) code.self.push_back({offset, samples});
  builder.Code(std::move(code));
}

}  // namespace

absl::StatusOr<ProfileModel> CountedRunModel(const FrameTable& frames, const StackTable& stacks, ProfileMeta meta,
                                             const SourceFiles& sources) {
  ProfileModelBuilder builder;
  builder.meta() = std::move(meta);
  builder.meta().whole_host = false;  // the labels have the pids already
  StackImporter importer(frames, stacks, builder);
  for (StackId id = 0; id < stacks.size(); ++id) {
    if (stacks.count(id) == 0) continue;
    ModelThread thread;
    thread.comm = builder.String(stacks.label(stacks.stack(id).label));
    builder.Add({.thread = builder.Thread(thread), .stack = importer.Stack(id), .weight = stacks.count(id)});
  }
  AddSources(sources, builder);
  return std::move(builder).Build();
}

absl::StatusOr<ProfileModel> SampledRunModel(const FrameTable& frames, const StackTable& stacks,
                                             const SampleLog& samples, MonotonicTime began, ProfileMeta meta,
                                             const SourceFiles& sources, const CodeLog* code, const EventLog& events) {
  ProfileModelBuilder builder;
  builder.meta() = std::move(meta);
  const auto thread_of = [&](const SampleLog::Thread& thread) {
    return builder.Thread({thread.pid, thread.tid, builder.String(thread.comm), builder.String(thread.name),
                           builder.String(thread.container_id)});
  };
  std::vector<ThreadIndex> threads;
  for (const SampleLog::Thread& thread : samples.threads()) threads.push_back(thread_of(thread));
  StackImporter importer(frames, stacks, builder);
  samples.ForEach([&](const SampleLog::Row& row) {
    builder.Add({.time_ns = row.time_ns == kNoTime ? kNoTime : row.time_ns - std::min(row.time_ns, began.ns),
                 .thread = threads[row.thread],
                 .stack = importer.Stack(row.stack),
                 .state = row.state,
                 .weight = row.weight,
                 .link = builder.Link(samples.links().at(row.link))});
  });
  AddSources(sources, builder);
  if (code != nullptr) {
    for (const CodeLog::Entry& entry : code->entries()) AddCode(entry, began, importer, builder);
  }
  for (const EventLog::Entry& entry : events.entries()) {
    builder.Event({.time_ns = entry.began.ns - std::min(entry.began.ns, began.ns),
                   .duration_ns = entry.duration_ns,
                   .thread = thread_of(entry.thread),
                   .kind = entry.kind,
                   .name = builder.String(entry.name),
                   .detail = builder.String(entry.detail)});
  }
  return std::move(builder).Build();
}

}  // namespace clrsampler
