#include "store/history_reader.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "formats/byte_reader.h"
#include "os/clock.h"
#include "status/status.h"
#include "store/blob.h"
#include "store/history_lists.h"
#include "store/history_schema.h"
#include "store/profile_collector.h"
#include "store/timeline_builder.h"

namespace clrsampler {
namespace {

// While a question is answered the log can't be cut.
constexpr absl::Duration kMaxTime = absl::Seconds(20);
constexpr size_t kMaxEntries = 1 << 20;  // 30 days are some 30,000
constexpr size_t kMaxRows = 100'000;     // of lists that are answers
constexpr size_t kMaxMethodGroups = 1 << 18;
constexpr size_t kMaxSteps = 10'000, kMaxSeries = 1000;
constexpr size_t kMinContainerIdBytes = 12;
// At most this number of processes is looked up one by one.
constexpr size_t kFewProcesses = 32;
constexpr uint64_t kYear = 366 * 24 * 3600 * kSecondNs;

bool Matches(const HistorySelection& selection, const SegmentDictionary& names, const SegmentProcess& process) {
  if (selection.pid && *selection.pid != process.pid) return false;
  if (selection.comm && names.text(process.comm) != *selection.comm) return false;
  if (selection.container) {
    const absl::string_view id = names.text(process.container_id), wanted = *selection.container;
    const bool same_id =
        !id.empty() &&
        (wanted == id || (wanted.size() >= kMinContainerIdBytes && id.substr(0, wanted.size()) == wanted));
    if (!same_id && names.text(process.container) != wanted) return false;
  }
  return true;
}

// Names a thread by its id or its name.
bool IsThread(absl::string_view wanted, uint32_t tid, absl::string_view name) {
  uint32_t number = 0;
  return wanted == name || (absl::SimpleAtoi(wanted, &number) && number == tid);
}

absl::Status CheckRange(uint64_t from, uint64_t to) {
  if (from < to) return absl::OkStatus();
  return WithHint(absl::InvalidArgumentError("the time asked for ends before it begins"), "let `from` be before `to`");
}

}  // namespace

absl::StatusOr<std::unique_ptr<HistoryReader>> HistoryReader::Open(const HistoryFile& file,
                                                                   const std::atomic<bool>& ended) {
  ASSIGN_OR_RETURN(SqliteConnection connection, file.OpenForReading());
  std::unique_ptr<HistoryReader> reader(new HistoryReader(std::move(connection), ended));
  RETURN_IF_ERROR(reader->Prepare());
  return reader;
}

absl::Status HistoryReader::Prepare() {
  const std::pair<SqliteStatement*, absl::string_view> statements[] = {
      {&entries_,
       "SELECT id, segment, level, begin_ns, end_ns, checksum FROM entry WHERE begin_ns >= ? AND begin_ns < ? ORDER "
       "BY id"},
      {&additions_, "SELECT data FROM dictionary WHERE id >= ? AND id < ? ORDER BY id"},
      {&part_, "SELECT data FROM part WHERE id = ?"},
      {&parts_, "SELECT id, data FROM part WHERE id >= ? AND id < ? ORDER BY id"},
      {&levels_, "SELECT level, count(*) FROM entry GROUP BY level"},
      {&oldest_, "SELECT coalesce(min(begin_ns), 0) FROM entry"},
      {&newest_, "SELECT coalesce(max(end_ns), 0) FROM entry"},
  };
  for (const auto& [statement, sql] : statements) {
    ASSIGN_OR_RETURN(SqliteStatement prepared, connection_.Prepare(sql));
    *statement = std::move(prepared);
  }
  return absl::OkStatus();
}

absl::StatusOr<HistorySpan> HistoryReader::Span() {
  ASSIGN_OR_RETURN(SqliteTransaction snapshot, SqliteTransaction::Begin(connection_, SqliteTransaction::Kind::kRead));
  HistorySpan span;
  uint64_t* counts[kEntryLevelCount] = {&span.windows, &span.minutes, &span.hours};
  {
    SqliteRows rows = levels_.Run();
    while (true) {
      ASSIGN_OR_RETURN(const bool row, rows.Next());
      if (!row) break;
      const int64_t level = rows.Number(0);
      if (level >= 0 && level < kEntryLevelCount) *counts[level] = static_cast<uint64_t>(rows.Number(1));
    }
  }
  for (const auto& [statement, value] :
       {std::pair(&oldest_, &span.oldest_unix_ns), std::pair(&newest_, &span.newest_unix_ns)}) {
    SqliteRows rows = statement->Run();
    RETURN_IF_ERROR(rows.Next().status());
    *value = static_cast<uint64_t>(std::max<int64_t>(0, rows.Number(0)));
  }
  return span;
}

absl::StatusOr<ProfileModel> HistoryReader::Profile(const HistorySelection& selection, ProfileView view) {
  ASSIGN_OR_RETURN(SqliteTransaction snapshot, SqliteTransaction::Begin(connection_, SqliteTransaction::Kind::kRead));
  ASSIGN_OR_RETURN(const std::vector<Entry> entries, EntriesOf(selection));

  const PartKind kind = PartOf(view);
  ProfileCollector collector;
  ProfileMeta& meta = collector.meta();
  meta.view = view;
  meta.unit = WindowUnitOf(view);
  meta.whole_host = !selection.pid;
  if (selection.pid) meta.pids = {*selection.pid};
  uint64_t begin = std::numeric_limits<uint64_t>::max(), end = 0;
  for (const Entry& entry : entries) {
    begin = std::min(begin, entry.begin_unix_ns);
    end = std::max(end, entry.end_unix_ns);
  }
  if (!entries.empty()) {
    meta.start_unix_ns = begin;
    meta.duration_ns = end - std::min(begin, end);
    std::vector<TimeStretch> recorded;
    for (const Entry& entry : entries) recorded.push_back({entry.begin_unix_ns - begin, entry.end_unix_ns - begin});
    meta.SetRecorded(std::move(recorded));
  }

  int64_t segment_id = -1;
  const absl::Status read = ForEach(entries, selection, [&](const Entry& entry, const SegmentView& segment) {
    if (std::exchange(segment_id, entry.segment) != entry.segment) collector.BeginSegment(segment.names);
    return ReadStacks(entry, segment, kind, [&](uint32_t, std::span<const StackRow> rows) {
      for (const StackRow& row : rows) {
        if (view == ProfileView::kPause && row.state != SampleState::kPaused) continue;
        RETURN_IF_ERROR(collector.Add(segment.names, row));
      }
      return absl::OkStatus();
    });
  });
  if (!read.ok()) return read;
  return std::move(collector).Build();
}

absl::StatusOr<clrsampler::Timeline> HistoryReader::Timeline(const HistorySelection& selection, TimelineBy by,
                                                             size_t max_steps, size_t max_series) {
  ASSIGN_OR_RETURN(SqliteTransaction snapshot, SqliteTransaction::Begin(connection_, SqliteTransaction::Kind::kRead));
  ASSIGN_OR_RETURN(const std::vector<Entry> entries, EntriesOf(selection));
  max_series = std::clamp<size_t>(max_series, 1, kMaxSeries);
  const Steps steps = StepsOf(entries, selection, max_steps);
  TimelineBuilder builder(steps.begin_unix_ns, steps.step_ns, steps.count, by);

  for (const bool fill : {false, true}) {
    if (fill) builder.Choose(max_series);
    int64_t segment_id = -1;
    std::vector<ProcessTally> tallies;
    const absl::Status read = ForEach(entries, selection, [&](const Entry& entry, const SegmentView& segment) {
      if (std::exchange(segment_id, entry.segment) != entry.segment) builder.BeginSegment(segment.names);
      tallies.clear();
      RETURN_IF_ERROR(ReadTallies(entry, segment, selection, tallies));
      if (fill) {
        builder.Fill(segment.names, entry.begin_unix_ns, entry.end_unix_ns, tallies);
      } else {
        builder.Rank(segment.names, tallies);
      }
      return absl::OkStatus();
    });
    if (!read.ok()) return read;
  }
  return std::move(builder).Build();
}

absl::StatusOr<HistoryPauses> HistoryReader::Pauses(const HistorySelection& selection, size_t limit) {
  ASSIGN_OR_RETURN(SqliteTransaction snapshot, SqliteTransaction::Begin(connection_, SqliteTransaction::Kind::kRead));
  ASSIGN_OR_RETURN(const std::vector<Entry> entries, EntriesOf(selection));

  LongestPauses longest(std::min(limit, kMaxRows));
  std::vector<ProcessTally> tallies;
  std::vector<EntryPause> pauses;
  const absl::Status read =
      ForEach(entries, selection, [&](const Entry& entry, const SegmentView& segment) -> absl::Status {
        const SegmentDictionary& names = segment.names;
        if (!selection.thread) {
          tallies.clear();
          RETURN_IF_ERROR(ReadTallies(entry, segment, selection, tallies));
          for (const ProcessTally& tally : tallies) longest.Count(names, tally);
        }
        pauses.clear();
        RETURN_IF_ERROR(ReadPart(PartKey(entry.id, PartKind::kPauses), segment, DecodePauses, pauses));
        for (const EntryPause& pause : pauses) {
          if (!segment.processes[pause.process]) continue;
          if (selection.thread) {
            if (!IsThread(*selection.thread, pause.tid, names.text(pause.thread_name))) continue;
            longest.Count(names, pause);
          }
          longest.Keep(names, pause);
        }
        return absl::OkStatus();
      });
  if (!read.ok()) return read;
  return std::move(longest).Take();
}

absl::StatusOr<HistoryMethods> HistoryReader::Methods(const HistorySelection& selection, size_t limit) {
  RETURN_IF_ERROR(CheckMethodSelection(selection));
  ASSIGN_OR_RETURN(SqliteTransaction snapshot, SqliteTransaction::Begin(connection_, SqliteTransaction::Kind::kRead));
  ASSIGN_OR_RETURN(const std::vector<Entry> entries, EntriesOf(selection));

  MethodSums sums;
  std::vector<ProcessTally> tallies;
  std::vector<EntryMethod> methods;
  const absl::Status read =
      ForEach(entries, selection, [&](const Entry& entry, const SegmentView& segment) -> absl::Status {
        tallies.clear();
        RETURN_IF_ERROR(ReadTallies(entry, segment, selection, tallies));
        for (const ProcessTally& tally : tallies) sums.Count(tally);
        methods.clear();
        RETURN_IF_ERROR(ReadPart(PartKey(entry.id, PartKind::kMethods), segment, DecodeMethods, methods));
        for (const EntryMethod& method : methods) {
          if (segment.processes[method.process]) sums.Add(segment.names, method);
        }
        if (sums.size() <= kMaxMethodGroups) return absl::OkStatus();
        return WithHint(absl::ResourceExhaustedError("this time has more compiled methods than one answer may have"),
                        "ask for a shorter time, or for one process or container");
      });
  if (!read.ok()) return read;
  return std::move(sums).Take(std::min(limit, kMaxRows));
}

absl::StatusOr<HistoryHealth> HistoryReader::Health(uint64_t from_unix_ns, uint64_t to_unix_ns) {
  ASSIGN_OR_RETURN(SqliteTransaction snapshot, SqliteTransaction::Begin(connection_, SqliteTransaction::Kind::kRead));
  const HistorySelection all = {.from_unix_ns = from_unix_ns, .to_unix_ns = to_unix_ns};
  ASSIGN_OR_RETURN(const std::vector<Entry> entries, EntriesOf(all));

  HistoryHealth health;
  uint64_t self_cpu_ns = 0;
  std::vector<std::string> notices;  // oldest first
  const absl::Status read = ForEach(entries, all, [&](const Entry& entry, const SegmentView& segment) -> absl::Status {
    ASSIGN_OR_RETURN(const EntryAccount account, ReadAccount(entry, segment));
    const auto text = [&](StringIndex index) { return std::string(segment.names.text(index)); };
    health.covered_ns += account.covered_ns;
    health.samples_expected += account.samples_expected;
    health.samples_taken += account.samples_taken;
    health.samples_written += account.samples_written;
    for (const auto& [sum, more] :
         {std::pair(&health.managed, &account.managed), std::pair(&health.native, &account.native),
          std::pair(&health.kernel, &account.kernel)}) {
      sum->named += more->named;
      sum->unnamed += more->unnamed;
    }
    health.stacks_complete += account.stacks_complete;
    health.stacks_truncated += account.stacks_truncated;
    health.stacks_broken += account.stacks_broken;
    self_cpu_ns += account.self_cpu_ns;
    health.peak_rss_bytes = std::max(health.peak_rss_bytes, account.peak_rss_bytes);
    health.bpf_map_bytes = account.bpf_map_bytes;
    for (const auto& [reason, count] : account.lost) health.lost[text(reason)] += count;
    for (const auto& [kind, count] : account.notice_counts) health.notice_counts[text(kind)] += count;
    for (const StringIndex index : account.notices) {
      std::string notice = text(index);
      std::erase(notices, notice);
      notices.push_back(std::move(notice));
      if (notices.size() > kMaxEntryNotices) notices.erase(notices.begin());
    }
    for (const EntryAccount::Rate& rate : account.rates) {
      const bool changes = health.rates.empty() || health.rates.back().hz != rate.hz;
      if (changes && health.rates.size() < kMaxEntryRates) health.rates.push_back({rate.time_unix_ns, rate.hz});
    }
    return absl::OkStatus();
  });
  if (!read.ok()) return read;
  health.self_cpu_seconds = static_cast<double>(self_cpu_ns) / 1e9;
  health.notices.assign(notices.rbegin(), notices.rend());
  return health;
}

absl::StatusOr<std::vector<HistoryReader::Entry>> HistoryReader::EntriesOf(const HistorySelection& selection) {
  RETURN_IF_ERROR(CheckRange(selection.from_unix_ns, selection.to_unix_ns));
  deadline_ = absl::Now() + kMaxTime;
  std::vector<Entry> entries;
  SqliteRows rows = entries_.Run(ToSigned(selection.from_unix_ns), ToSigned(selection.to_unix_ns));
  while (true) {
    ASSIGN_OR_RETURN(const bool row, rows.Next());
    if (!row) return entries;
    const int64_t id = rows.Number(0), segment = rows.Number(1), level = rows.Number(2), begin = rows.Number(3),
                  end = rows.Number(4);
    const bool fits = id > 0 && id <= kMaxEntryId && segment > 0 && segment <= kMaxSegmentId && level >= 0 &&
                      level < kEntryLevelCount && begin >= 0 && end >= begin &&
                      rows.Number(5) == EntryChecksum(id, segment, static_cast<EntryLevel>(level), begin, end);
    if (!fits) {
      ++damaged_parts_;
      continue;
    }
    if (entries.size() == kMaxEntries) return absl::ResourceExhaustedError("the store has too many entries");
    entries.push_back(
        {id, segment, static_cast<EntryLevel>(level), static_cast<uint64_t>(begin), static_cast<uint64_t>(end)});
  }
}

HistoryReader::Steps HistoryReader::StepsOf(const std::vector<Entry>& entries, const HistorySelection& selection,
                                            size_t max_steps) {
  max_steps = std::clamp<size_t>(max_steps, 1, kMaxSteps);
  uint64_t natural = 10 * kSecondNs, first = selection.to_unix_ns, last = selection.from_unix_ns;
  for (const Entry& entry : entries) {
    if (entry.level == EntryLevel::kMinute) natural = std::max(natural, 60 * kSecondNs);
    if (entry.level == EntryLevel::kHour) natural = std::max(natural, 3600 * kSecondNs);
    first = std::min(first, entry.begin_unix_ns);
    last = std::max(last, entry.end_unix_ns);
  }
  uint64_t from = selection.from_unix_ns, to = selection.to_unix_ns;
  if (to - from > kYear && !entries.empty()) {  // "all that there is"
    from = std::max(from, first);
    to = std::max(from + 1, std::min(to, last));
  }
  if (max_steps == 1) to = std::max(to, last);  // a sum is of whole windows, as the other answers are
  Steps steps = {.begin_unix_ns = from / natural * natural};
  steps.step_ns = ((to - steps.begin_unix_ns - 1) / max_steps / natural + 1) * natural;
  steps.count = static_cast<size_t>((to - steps.begin_unix_ns - 1) / steps.step_ns + 1);
  return steps;
}

absl::Status HistoryReader::MayGoOn() const {
  if (ended_) return absl::CancelledError("clrsampler is ending");
  if (absl::Now() <= deadline_) return absl::OkStatus();
  return WithHint(absl::DeadlineExceededError("the question took too long"),
                  "ask for a shorter time, or for one process or container");
}

absl::Status HistoryReader::ForEach(const std::vector<Entry>& entries, const HistorySelection& selection,
                                    OnEntry on_entry) {
  SegmentView segment;
  for (const Entry& entry : entries) {
    RETURN_IF_ERROR(MayGoOn());
    if (segment.id != entry.segment) {
      segment = {};  // before the next one takes its memory
      ASSIGN_OR_RETURN(segment, LoadSegment(entry.segment, selection));
    }
    RETURN_IF_ERROR(on_entry(entry, segment));
  }
  return absl::OkStatus();
}

absl::StatusOr<HistoryReader::SegmentView> HistoryReader::LoadSegment(int64_t id, const HistorySelection& selection) {
  SegmentView segment;
  segment.id = id;
  SegmentDictionary& names = segment.names;
  {
    SqliteRows rows = additions_.Run(DictionaryKey(id), DictionaryKey(id + 1));
    bool whole = true;
    while (whole) {
      RETURN_IF_ERROR(MayGoOn());
      ASSIGN_OR_RETURN(const bool row, rows.Next());
      if (!row) break;
      const absl::StatusOr<std::string> bytes = UnpackBlob(rows.Blob(0));
      // Entries behind a damaged one can't be placed. Entries from before it are still readable.
      whole = bytes.ok() && names.Extend(AsBytes(*bytes)).ok();
    }
    if (!whole) ++damaged_parts_;
  }
  segment.processes.assign(names.sizes().processes, false);
  segment.threads.assign(names.sizes().threads, false);
  for (uint32_t i = 0; i < segment.processes.size(); ++i) {
    if (!Matches(selection, names, names.process(i))) continue;
    segment.processes[i] = true;
    segment.selected.push_back(i);
  }
  for (uint32_t i = 0; i < segment.threads.size(); ++i) {
    const SegmentThread& thread = names.thread(i);
    segment.threads[i] = segment.processes[thread.process] &&
                         (!selection.thread || IsThread(*selection.thread, thread.tid, names.text(thread.name)));
  }
  return segment;
}

template <typename T>
absl::Status HistoryReader::ReadPart(int64_t key, const SegmentView& segment,
                                     absl::Status (*decode)(std::span<const std::byte>, const DictionarySizes&,
                                                            std::vector<T>&),
                                     std::vector<T>& values) {
  SqliteRows rows = part_.Run(key);
  ASSIGN_OR_RETURN(const bool row, rows.Next());
  if (!row) return absl::OkStatus();
  const absl::StatusOr<std::string> bytes = UnpackBlob(rows.Blob(0));
  if (!bytes.ok() || !decode(AsBytes(*bytes), segment.names.sizes(), values).ok()) ++damaged_parts_;
  return absl::OkStatus();
}

absl::StatusOr<EntryAccount> HistoryReader::ReadAccount(const Entry& entry, const SegmentView& segment) {
  SqliteRows rows = part_.Run(PartKey(entry.id, PartKind::kAccount));
  ASSIGN_OR_RETURN(const bool row, rows.Next());
  if (row) {
    const absl::StatusOr<std::string> bytes = UnpackBlob(rows.Blob(0));
    if (bytes.ok()) {
      absl::StatusOr<EntryAccount> account = DecodeAccount(AsBytes(*bytes), segment.names.sizes());
      if (account.ok()) return account;
    }
  }
  ++damaged_parts_;  // each entry has one
  return EntryAccount();
}

absl::Status HistoryReader::ReadStacks(
    const Entry& entry, const SegmentView& segment, PartKind kind,
    absl::FunctionRef<absl::Status(uint32_t, std::span<const StackRow>)> on_process) {
  std::vector<StackRow> stacks;
  const auto use = [&](uint32_t process) {
    std::erase_if(stacks, [&](const StackRow& row) { return !segment.threads[row.thread]; });
    return stacks.empty() ? absl::OkStatus() : on_process(process, stacks);
  };
  if (segment.selected.size() <= kFewProcesses) {
    for (const uint32_t process : segment.selected) {
      stacks.clear();
      RETURN_IF_ERROR(ReadPart(PartKey(entry.id, kind, process), segment, DecodeRows, stacks));
      RETURN_IF_ERROR(use(process));
    }
    return absl::OkStatus();
  }
  SqliteRows rows = parts_.Run(PartKey(entry.id, kind), PartKeyAfter(entry.id, kind));
  while (true) {
    RETURN_IF_ERROR(MayGoOn());
    ASSIGN_OR_RETURN(const bool row, rows.Next());
    if (!row) return absl::OkStatus();
    const uint32_t process = PartProcess(rows.Number(0));
    if (process >= segment.processes.size() || !segment.processes[process]) continue;
    stacks.clear();
    const absl::StatusOr<std::string> bytes = UnpackBlob(rows.Blob(1));
    if (!bytes.ok() || !DecodeRows(AsBytes(*bytes), segment.names.sizes(), stacks).ok()) ++damaged_parts_;
    RETURN_IF_ERROR(use(process));
  }
}

absl::Status HistoryReader::ReadTallies(const Entry& entry, const SegmentView& segment,
                                        const HistorySelection& selection, std::vector<ProcessTally>& tallies) {
  RETURN_IF_ERROR(ReadPart(PartKey(entry.id, PartKind::kTallies), segment, DecodeTallies, tallies));
  std::erase_if(tallies, [&](const ProcessTally& tally) { return !segment.processes[tally.process]; });
  if (!selection.thread) return absl::OkStatus();
  absl::flat_hash_map<uint32_t, uint64_t> cpu_ns;
  RETURN_IF_ERROR(ReadStacks(entry, segment, PartKind::kCpu, [&](uint32_t process, std::span<const StackRow> rows) {
    for (const StackRow& row : rows) cpu_ns[process] += row.weight;
    return absl::OkStatus();
  }));
  for (ProcessTally& tally : tallies) {
    tally.cpu_ns = {};
    const auto found = cpu_ns.find(tally.process);
    if (found != cpu_ns.end()) tally.cpu_ns[0] = found->second;
  }
  return absl::OkStatus();
}

}  // namespace clrsampler
