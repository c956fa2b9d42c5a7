// The lanes of threads, out of the stacks of the entries.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "status/status.h"
#include "store/history_reader.h"
#include "store/lane_builder.h"
#include "store/lane_nodes.h"

namespace clrsampler {
namespace {

constexpr size_t kMaxThreads = 100, kMaxValues = 500'000;
constexpr uint32_t kNotYet = ~uint32_t{0};

HistoryLanes::Thread ThreadOf(const SegmentDictionary& names, const SegmentThread& thread) {
  const SegmentProcess& process = names.process(thread.process);
  return {.pid = process.pid,
          .tid = thread.tid,
          .comm = std::string(names.text(process.comm)),
          .container = std::string(names.text(process.container)),
          .name = std::string(names.text(thread.name))};
}

}  // namespace

absl::StatusOr<HistoryLanes> HistoryReader::Lanes(const HistorySelection& selection, const LaneQuestion& question) {
  ASSIGN_OR_RETURN(SqliteTransaction snapshot, SqliteTransaction::Begin(connection_, SqliteTransaction::Kind::kRead));
  ASSIGN_OR_RETURN(const std::vector<Entry> entries, EntriesOf(selection));
  const Steps steps = StepsOf(entries, selection, question.max_steps);
  const size_t max_threads = std::clamp<size_t>(question.max_threads, 1, kMaxThreads);
  if (steps.count * (max_threads + 1) > kMaxValues) {
    return WithHint(absl::ResourceExhaustedError("so many threads at so many points are too much for one answer"),
                    "ask for fewer points or threads");
  }
  LaneBuilder builder(steps.begin_unix_ns, steps.step_ns, steps.count);

  for (const bool fill : {false, true}) {
    if (fill) builder.Choose(max_threads);
    int64_t segment_id = -1;
    std::optional<LaneNodes> nodes;
    std::vector<uint32_t> numbers;  // of the segment's threads
    using State = std::pair<uint32_t, LaneCategory>;
    absl::flat_hash_map<State, uint64_t> sums;
    const absl::Status read =
        ForEach(entries, selection, [&](const Entry& entry, const SegmentView& segment) -> absl::Status {
          const SegmentDictionary& names = segment.names;
          if (std::exchange(segment_id, entry.segment) != entry.segment) {
            nodes.emplace(
                names.nodes(), names.frames(), [&](StringIndex index) { return names.text(index); }, question.method);
            numbers.assign(names.sizes().threads, kNotYet);
          }
          if (fill) builder.Cover(entry.begin_unix_ns, entry.end_unix_ns);
          sums.clear();
          for (const PartKind kind : {PartKind::kCpu, PartKind::kWaits}) {
            RETURN_IF_ERROR(ReadStacks(entry, segment, kind, [&](uint32_t, std::span<const StackRow> rows) {
              for (const StackRow& row : rows) {
                if (!nodes->Counts(row.node)) continue;
                const bool runs = kind == PartKind::kCpu;
                sums[{row.thread, runs ? nodes->Running(row.node) : nodes->Waiting(row.node)}] += row.weight;
              }
              return absl::OkStatus();
            }));
          }
          for (const auto& [state, ns] : sums) {
            uint32_t& number = numbers[state.first];
            if (number == kNotYet) {
              const SegmentThread& thread = names.thread(state.first);
              number = builder.Thread(ThreadOf(names, thread), names.process(thread.process).started_boot_ns);
            }
            if (fill) {
              builder.Fill(number, state.second, entry.begin_unix_ns, entry.end_unix_ns, ns);
            } else {
              builder.Rank(number, ns);
            }
          }
          return absl::OkStatus();
        });
    if (!read.ok()) return read;
  }
  return std::move(builder).Build();
}

}  // namespace clrsampler
