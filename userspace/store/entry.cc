#include "store/entry.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

#include "profile/window_part.h"
#include "status/status.h"
#include "store/varint.h"

namespace clrsampler {
namespace {

uint64_t SaturatingSum(uint64_t a, uint64_t b) {
  return a > std::numeric_limits<uint64_t>::max() - b ? ~uint64_t{0} : a + b;
}

// The largest weight. A model can hold many of these: a sum of millions of hostile ones still fits into 64 bits.
constexpr uint64_t kMaxRowWeight = uint64_t{1} << 62;

// Each counter of the two, in the order of the file: one place for encoding, decoding and merging.
template <typename Tally, typename Visit>
void VisitCounters(Tally& tally, Visit visit) {
  visit(tally.samples);
  for (auto& share : tally.cpu_ns) visit(share);
  for (auto* counts : {&tally.managed, &tally.native, &tally.kernel}) {
    visit(counts->named);
    visit(counts->unnamed);
  }
  visit(tally.stacks_complete);
  visit(tally.stacks_cut);
  visit(tally.pauses);
  visit(tally.pause_ns);
  visit(tally.suspend_ns);
  for (auto& generation : tally.collections) visit(generation);
  visit(tally.background_collections);
  visit(tally.compilations);
  visit(tally.compile_ns);
  visit(tally.allocated_bytes);
  // A new kind comes last.
  visit(tally.waits.running_ns);
  visit(tally.waits.short_ns);
  visit(tally.waits.untold_ns);
  for (auto& kind : tally.waits.by_kind) visit(kind);
}

template <typename Account, typename Visit>
void VisitSums(Account& account, Visit visit) {
  visit(account.covered_ns);
  visit(account.samples_expected);
  visit(account.samples_taken);
  visit(account.samples_written);
  for (auto* counts : {&account.managed, &account.native, &account.kernel}) {
    visit(counts->named);
    visit(counts->unnamed);
  }
  visit(account.stacks_complete);
  visit(account.stacks_truncated);
  visit(account.stacks_broken);
  visit(account.self_cpu_ns);
  visit(account.pauses_left_out);
  visit(account.methods_left_out);
}

// Adds all counters of `more`, which has as many.
template <typename Value, typename Visitor>
void AddCounters(Value& sum, const Value& more, Visitor visit_all) {
  std::vector<uint64_t> values;
  visit_all(more, [&](uint64_t value) { values.push_back(value); });
  auto next = values.begin();
  visit_all(sum, [&](uint64_t& value) { value = SaturatingSum(value, *next++); });
}

void EncodeCounts(const std::map<StringIndex, uint64_t>& counts, VarintWriter& out) {
  out.Number(counts.size());
  for (const auto& [text, count] : counts) {
    out.Number(text);
    out.Number(count);
  }
}

std::map<StringIndex, uint64_t> DecodeCounts(VarintReader& in, const DictionarySizes& sizes) {
  std::map<StringIndex, uint64_t> counts;
  const size_t size = in.Count(2);
  for (size_t i = 0; i < size && in.ok(); ++i) {
    const auto text = static_cast<StringIndex>(in.Below(sizes.strings));
    counts[text] = in.Number();
  }
  return counts;
}

StringIndex ReadString(VarintReader& in, const DictionarySizes& sizes) {
  return static_cast<StringIndex>(in.Below(sizes.strings));
}

absl::Status WholeOr(const VarintReader& in, absl::string_view what) {
  if (in.ok() && in.AtEnd()) return absl::OkStatus();
  return absl::DataLossError(what);
}

// The same, but nothing is kept of a part that is not whole.
template <typename T>
absl::Status WholeOr(const VarintReader& in, absl::string_view what, std::vector<T>& values, size_t before) {
  absl::Status status = WholeOr(in, what);
  if (!status.ok()) values.erase(values.begin() + static_cast<ptrdiff_t>(before), values.end());
  return status;
}

template <typename T>
uint64_t KeepFirst(std::vector<T>& values, size_t limit) {
  if (values.size() <= limit) return 0;
  const uint64_t left_out = values.size() - limit;
  values.erase(values.begin() + static_cast<ptrdiff_t>(limit), values.end());
  return left_out;
}

}  // namespace

PartKind PartOf(ProfileView view) {
  switch (WindowPartOf(view)) {
    case WindowPart::kJit:
      return PartKind::kJit;
    case WindowPart::kSuspendDelay:
      return PartKind::kSuspend;
    case WindowPart::kAllocations:
      return PartKind::kAllocations;
    case WindowPart::kWaits:
      return PartKind::kWaits;
    case WindowPart::kCpu:
      break;
  }
  return PartKind::kCpu;
}

uint64_t ProcessTally::total_cpu_ns() const {
  return std::accumulate(cpu_ns.begin(), cpu_ns.end(), uint64_t{0}, SaturatingSum);
}

void MergeRows(std::vector<StackRow>& rows) {
  const auto key = [](const StackRow& row) { return std::tuple(row.thread, row.state, row.node); };
  std::sort(rows.begin(), rows.end(), [&](const StackRow& a, const StackRow& b) { return key(a) < key(b); });
  size_t kept = 0;
  for (const StackRow& row : rows) {
    if (kept > 0 && key(rows[kept - 1]) == key(row)) {
      rows[kept - 1].weight = std::min(kMaxRowWeight, SaturatingSum(rows[kept - 1].weight, row.weight));
    } else {
      rows[kept++] = row;
    }
  }
  rows.resize(kept);
}

// A common divisor of all weights comes first. Then groups of the rows of one thread and state follow, in two columns
// each. Most samples stand for the same time. So their weights are 1 each, and the second column vanishes when it is
// compressed.
std::string EncodeRows(std::span<const StackRow> rows) {
  VarintWriter out;
  uint64_t unit = 0;
  for (const StackRow& row : rows) unit = std::gcd(unit, row.weight);
  unit = std::max(unit, uint64_t{1});
  out.Number(unit);
  uint32_t last_thread = 0;
  for (size_t begin = 0; begin < rows.size();) {
    const StackRow& first = rows[begin];
    size_t end = begin + 1;
    while (end < rows.size() && rows[end].thread == first.thread && rows[end].state == first.state) ++end;
    out.Number(first.thread - last_thread);
    last_thread = first.thread;
    out.Number((end - begin) * kSampleStateCount + static_cast<uint64_t>(first.state));
    NodeIndex last_node = 0;
    for (size_t i = begin; i < end; ++i) {
      out.Number(rows[i].node - last_node);
      last_node = rows[i].node;
    }
    for (size_t i = begin; i < end; ++i) out.Number(rows[i].weight / unit);
    begin = end;
  }
  return std::move(out).Take();
}

absl::Status DecodeRows(std::span<const std::byte> bytes, const DictionarySizes& sizes, std::vector<StackRow>& rows) {
  const size_t before = rows.size();
  VarintReader in(bytes);
  const uint64_t unit = in.Number();
  uint64_t thread = 0;
  while (in.ok() && !in.AtEnd()) {
    thread += in.Below(sizes.threads - thread);
    const uint64_t group = in.Number();
    const uint64_t count = group / kSampleStateCount;
    if (count == 0 || count > bytes.size() / 2) in.Fail();
    const size_t begin = rows.size();
    uint64_t node = 0;
    for (uint64_t i = 0; i < count && in.ok(); ++i) {
      node += in.Below(sizes.nodes - node);
      rows.push_back({.thread = static_cast<uint32_t>(thread),
                      .node = static_cast<NodeIndex>(node),
                      .state = static_cast<SampleState>(group % kSampleStateCount)});
    }
    for (size_t i = begin; i < rows.size() && in.ok(); ++i) {
      const uint64_t weight = in.Number();
      if (weight == 0 || unit == 0 || weight > kMaxRowWeight / unit) in.Fail();
      rows[i].weight = weight * unit;
    }
  }
  return WholeOr(in, "rows of samples that fit to no dictionary", rows, before);
}

void MergeTallies(std::vector<ProcessTally>& tallies) {
  std::stable_sort(tallies.begin(), tallies.end(),
                   [](const ProcessTally& a, const ProcessTally& b) { return a.process < b.process; });
  std::vector<ProcessTally> merged;
  for (ProcessTally& tally : tallies) {
    if (merged.empty() || merged.back().process != tally.process) {
      merged.push_back(std::move(tally));
      continue;
    }
    ProcessTally& sum = merged.back();
    sum.exited |= tally.exited;
    sum.hooked |= tally.hooked;
    AddCounters(sum, tally, [](auto& value, auto visit) { VisitCounters(value, visit); });
    for (const auto& [kind, count] : tally.pauses_by_kind) {
      sum.pauses_by_kind[kind] = SaturatingSum(sum.pauses_by_kind[kind], count);
    }
  }
  tallies = std::move(merged);
}

// Most counters of most processes are 0. A bit for each says which are there.
std::string EncodeTallies(std::span<const ProcessTally> tallies) {
  VarintWriter out;
  for (const ProcessTally& tally : tallies) {
    out.Number(tally.process);
    out.Number((tally.exited ? 1 : 0) | (tally.hooked ? 2 : 0));
    uint64_t present = 0;
    int counter = 0;
    VisitCounters(tally, [&](uint64_t value) { present |= uint64_t{value != 0} << counter++; });
    out.Number(present);
    VisitCounters(tally, [&](uint64_t value) {
      if (value != 0) out.Number(value);
    });
    EncodeCounts(tally.pauses_by_kind, out);
  }
  return std::move(out).Take();
}

absl::Status DecodeTallies(std::span<const std::byte> bytes, const DictionarySizes& sizes,
                           std::vector<ProcessTally>& tallies) {
  const size_t before = tallies.size();
  VarintReader in(bytes);
  while (in.ok() && !in.AtEnd()) {
    ProcessTally tally;
    tally.process = static_cast<uint32_t>(in.Below(sizes.processes));
    const uint64_t flags = in.Below(4);
    tally.exited = (flags & 1) != 0;
    tally.hooked = (flags & 2) != 0;
    uint64_t present = in.Number();
    VisitCounters(tally, [&](uint64_t& value) {
      if ((present & 1) != 0) value = in.Number();
      present >>= 1;
    });
    if (present != 0) in.Fail();
    tally.pauses_by_kind = DecodeCounts(in, sizes);
    if (in.ok()) tallies.push_back(std::move(tally));
  }
  return WholeOr(in, "counts of processes that fit to no dictionary", tallies, before);
}

uint64_t MergePauses(std::vector<EntryPause>& pauses, size_t limit) {
  uint64_t left_out = 0;
  if (pauses.size() > limit) {
    std::nth_element(pauses.begin(), pauses.begin() + static_cast<ptrdiff_t>(limit), pauses.end(),
                     [](const EntryPause& a, const EntryPause& b) { return a.pause_ns > b.pause_ns; });
    left_out = KeepFirst(pauses, limit);
  }
  std::stable_sort(pauses.begin(), pauses.end(),
                   [](const EntryPause& a, const EntryPause& b) { return a.requested_unix_ns < b.requested_unix_ns; });
  return left_out;
}

std::string EncodePauses(std::span<const EntryPause> pauses) {
  VarintWriter out;
  for (const EntryPause& pause : pauses) {
    out.Number(pause.process);
    out.Number(pause.requested_unix_ns);
    out.Number(pause.suspend_ns);
    out.Number(pause.pause_ns);
    for (const StringIndex text : {pause.kind, pause.reason, pause.gc_reason, pause.thread_name}) out.Number(text);
    out.Number(pause.tid);
    out.Number((pause.generation ? 1 : 0) | (pause.gc_index ? 2 : 0) | (pause.induced ? 4 : 0));
    if (pause.generation) out.Number(*pause.generation);
    if (pause.gc_index) out.Number(*pause.gc_index);
    out.Number(pause.culprits.size());
    for (const EntryPause::Blame& culprit : pause.culprits) {
      out.Number(culprit.method);
      out.Number(culprit.tid);
      out.Number(culprit.delay_ns);
      out.Number(culprit.samples);
    }
  }
  return std::move(out).Take();
}

absl::Status DecodePauses(std::span<const std::byte> bytes, const DictionarySizes& sizes,
                          std::vector<EntryPause>& pauses) {
  const size_t before = pauses.size();
  VarintReader in(bytes);
  while (in.ok() && !in.AtEnd()) {
    EntryPause pause;
    pause.process = static_cast<uint32_t>(in.Below(sizes.processes));
    pause.requested_unix_ns = in.Number();
    pause.suspend_ns = in.Number();
    pause.pause_ns = in.Number();
    for (StringIndex* text : {&pause.kind, &pause.reason, &pause.gc_reason, &pause.thread_name}) {
      *text = ReadString(in, sizes);
    }
    pause.tid = in.Number32();
    const uint64_t flags = in.Below(8);
    if ((flags & 1) != 0) pause.generation = in.Number32();
    if ((flags & 2) != 0) pause.gc_index = in.Number();
    pause.induced = (flags & 4) != 0;
    const size_t culprits = in.Count(4);
    for (size_t i = 0; i < culprits && in.ok(); ++i) {
      EntryPause::Blame& culprit = pause.culprits.emplace_back();
      culprit.method = ReadString(in, sizes);
      culprit.tid = in.Number32();
      culprit.delay_ns = in.Number();
      culprit.samples = in.Number32();
    }
    if (in.ok()) pauses.push_back(std::move(pause));
  }
  return WholeOr(in, "pauses that fit to no dictionary", pauses, before);
}

uint64_t MergeMethods(std::vector<EntryMethod>& methods, size_t limit) {
  const auto key = [](const EntryMethod& m) { return std::tuple(m.process, m.method, m.tier); };
  std::sort(methods.begin(), methods.end(),
            [&](const EntryMethod& a, const EntryMethod& b) { return key(a) < key(b); });
  size_t kept = 0;
  for (const EntryMethod& method : methods) {
    if (kept == 0 || key(methods[kept - 1]) != key(method)) {
      methods[kept++] = method;
      continue;
    }
    EntryMethod& sum = methods[kept - 1];
    sum.count = SaturatingSum(sum.count, method.count);
    sum.total_ns = SaturatingSum(sum.total_ns, method.total_ns);
    sum.longest_ns = std::max(sum.longest_ns, method.longest_ns);
    sum.bytes = SaturatingSum(sum.bytes, method.bytes);
  }
  methods.resize(kept);
  std::stable_sort(methods.begin(), methods.end(),
                   [](const EntryMethod& a, const EntryMethod& b) { return a.total_ns > b.total_ns; });
  return KeepFirst(methods, limit);
}

std::string EncodeMethods(std::span<const EntryMethod> methods) {
  VarintWriter out;
  for (const EntryMethod& method : methods) {
    for (const StringIndex number : {method.process, method.method, method.tier}) out.Number(number);
    for (const uint64_t number : {method.count, method.total_ns, method.longest_ns, method.bytes}) out.Number(number);
  }
  return std::move(out).Take();
}

absl::Status DecodeMethods(std::span<const std::byte> bytes, const DictionarySizes& sizes,
                           std::vector<EntryMethod>& methods) {
  const size_t before = methods.size();
  VarintReader in(bytes);
  while (in.ok() && !in.AtEnd()) {
    EntryMethod method;
    method.process = static_cast<uint32_t>(in.Below(sizes.processes));
    method.method = ReadString(in, sizes);
    method.tier = ReadString(in, sizes);
    for (uint64_t* number : {&method.count, &method.total_ns, &method.longest_ns, &method.bytes}) *number = in.Number();
    if (in.ok()) methods.push_back(method);
  }
  return WholeOr(in, "compiled methods that fit to no dictionary", methods, before);
}

void MergeAccount(EntryAccount& account, const EntryAccount& later) {
  AddCounters(account, later, [](auto& value, auto visit) { VisitSums(value, visit); });
  account.peak_rss_bytes = std::max(account.peak_rss_bytes, later.peak_rss_bytes);
  account.bpf_map_bytes = later.bpf_map_bytes;
  for (const auto& [reason, count] : later.lost) account.lost[reason] = SaturatingSum(account.lost[reason], count);
  for (const auto& [kind, count] : later.notice_counts) {
    account.notice_counts[kind] = SaturatingSum(account.notice_counts[kind], count);
  }
  account.notices.insert(account.notices.end(), later.notices.begin(), later.notices.end());
  if (account.notices.size() > kMaxEntryNotices) {
    account.notices.erase(account.notices.begin(), account.notices.end() - kMaxEntryNotices);
  }
  for (const EntryAccount::Rate& rate : later.rates) {
    const bool changes = account.rates.empty() || account.rates.back().hz != rate.hz;
    if (changes && account.rates.size() < kMaxEntryRates) account.rates.push_back(rate);
  }
}

std::string EncodeAccount(const EntryAccount& account) {
  VarintWriter out;
  VisitSums(account, [&](uint64_t value) { out.Number(value); });
  out.Number(account.peak_rss_bytes);
  out.Number(account.bpf_map_bytes);
  EncodeCounts(account.lost, out);
  EncodeCounts(account.notice_counts, out);
  out.Number(account.notices.size());
  for (const StringIndex notice : account.notices) out.Number(notice);
  out.Number(account.rates.size());
  for (const EntryAccount::Rate& rate : account.rates) {
    out.Number(rate.time_unix_ns);
    out.Number(rate.hz);
  }
  return std::move(out).Take();
}

absl::StatusOr<EntryAccount> DecodeAccount(std::span<const std::byte> bytes, const DictionarySizes& sizes) {
  VarintReader in(bytes);
  EntryAccount account;
  VisitSums(account, [&](uint64_t& value) { value = in.Number(); });
  account.peak_rss_bytes = in.Number();
  account.bpf_map_bytes = in.Number();
  account.lost = DecodeCounts(in, sizes);
  account.notice_counts = DecodeCounts(in, sizes);
  const size_t notices = in.Count(1);
  for (size_t i = 0; i < notices && in.ok(); ++i) account.notices.push_back(ReadString(in, sizes));
  const size_t rates = in.Count(2);
  for (size_t i = 0; i < rates && in.ok(); ++i) {
    EntryAccount::Rate& rate = account.rates.emplace_back();
    rate.time_unix_ns = in.Number();
    rate.hz = in.Number32();
  }
  RETURN_IF_ERROR(WholeOr(in, "an account that fits to no dictionary"));
  return account;
}

}  // namespace clrsampler
