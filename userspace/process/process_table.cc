#include "process/process_table.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/proc/maps_text.h"
#include "formats/proc/stat_text.h"
#include "formats/proc/status_text.h"
#include "process/maps_mapping.h"

namespace clrsampler {
namespace {

// A process with 65,530 mappings (the kernel's default limit) has maps of some 10 MB.
constexpr size_t kMaxProcFileBytes = 64 << 20;

// Start times in /proc have the resolution of a tick (10 ms), those of samples are exact.
constexpr uint64_t kStartToleranceNs = 20'000'000;

// No event tells of munmap, so mappings that a process makes here and there in turn pile up. More than the kernel's
// default limit can't be there at once. Then /proc is asked for the real ones, but not all the time.
constexpr size_t kMaxMappings = 65'536;
constexpr uint64_t kRescanNs = 1'000'000'000;

bool SameStart(uint64_t a_ns, uint64_t b_ns) {
  if (a_ns == 0 || b_ns == 0) return true;  // unknown
  return (a_ns > b_ns ? a_ns - b_ns : b_ns - a_ns) <= kStartToleranceNs;
}

uint64_t TickNs() {
  static const uint64_t tick_ns = 1'000'000'000 / static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
  return tick_ns;
}

// The start time as /proc gives it. Samples know it better, but a reader of /proc must find the same process.
uint64_t WholeTicks(uint64_t start_ns) { return start_ns / TickNs() * TickNs(); }

}  // namespace

ProcessTable::Entry* ProcessTable::FindEntry(uint32_t tgid) {
  const auto found = current_.find(tgid);
  return found == current_.end() ? nullptr : found->second.get();
}

Process* ProcessTable::Find(uint32_t tgid) {
  main_loop_.Check();
  Entry* entry = FindEntry(tgid);
  return entry == nullptr ? nullptr : &entry->process;
}

ProcessTable::Entry& ProcessTable::Add(uint32_t tgid, TargetFiles files, MonotonicTime time) {
  std::unique_ptr<Entry>& slot = current_[tgid];
  if (slot != nullptr) replaced_.push_back(slot->process.key);
  slot = std::make_unique<Entry>(Process(ProcessKey{tgid, next_incarnation_++}, std::move(files)));
  slot->process.ends = ends_;
  slot->process.first_seen = time;
  return *slot;
}

Process& ProcessTable::FindOrScan(uint32_t tgid, uint64_t start_ns) {
  main_loop_.Check();
  if (Entry* entry = FindEntry(tgid); entry != nullptr && SameStart(entry->process.started_boot_ns, start_ns)) {
    if (entry->process.started_boot_ns == 0) entry->process.started_boot_ns = WholeTicks(start_ns);
    if (entry->process.scanned < events_lost_) ScanAgain(*entry);
    return entry->process;
  }
  const MonotonicTime now = clock_.Now();
  Entry& entry = Add(tgid, TargetFiles(proc_root_, tgid, tape_, broker_), now);
  entry.process.started_boot_ns = WholeTicks(start_ns);
  if (const auto announced = announced_execs_.find(tgid); announced != announced_execs_.end()) {
    entry.process.code_known_since = announced->second;
  }
  entry.process.scanned = now;  // before the first read: what happens from here on comes as an event too
  Scan(entry);
  return entry.process;
}

void ProcessTable::ScanAgain(Entry& entry) {
  Process& process = entry.process;
  entry.process.scanned = clock_.Now();
  process.code_known_since = entry.process.scanned;
  process.mappings.Clear();
  process.files.Reopen();
  Scan(entry);
}

// All that was known of the process's code is of the program before.
void ProcessTable::BeginProgram(Process& process) {
  process.compiles_since = MonotonicTime::Max();
  ++process.exec_count;
}

void ProcessTable::Scan(Entry& entry) {
  Process& process = entry.process;
  const uint64_t start_stack = std::exchange(process.start_stack, 0);
  const std::string executable = process.executable;
  if (const auto text = process.files.ReadProc("stat", kMaxProcFileBytes); text.ok()) {
    if (const auto stat = ParseStat(*text); stat.ok()) {
      // A new owner of the pid must not lend its files to the one that was sampled.
      if (!SameStart(process.started_boot_ns, stat->start_ticks * TickNs())) return;
      if (process.started_boot_ns == 0) process.started_boot_ns = stat->start_ticks * TickNs();
      process.comm = stat->comm;
      process.start_stack = stat->start_stack;
    }
  }
  ReadIdentity(process);
  // The path of a program changes also when its file is deleted.
  const bool stacks_known = start_stack != 0 && process.start_stack != 0;
  if (stacks_known ? process.start_stack != start_stack : !executable.empty() && process.executable != executable) {
    BeginProgram(process);
    process.code_known_since = process.scanned;
    ends_->Announce(process.key);
  }
  if (const auto text = process.files.ReadProc("maps", kMaxProcFileBytes); text.ok()) {
    for (const MapsLine& line : ParseMaps(*text, /*executable_only=*/true).lines) {
      process.mappings.Insert(MappingOf(line));
    }
  }
  if (process.compiles_since == MonotonicTime::Max() && process.mappings.has_jit_memory()) {
    // Start times are of the clock that runs on while the machine sleeps; after a sleep it is ahead of ours.
    const MonotonicTime started{std::min(process.started_boot_ns, process.scanned.ns)};
    process.compiles_since = std::max(started, process.code_known_since);
  }
  for (const AnnouncedMapping& mapping : announced_mappings_) {
    if (mapping.tgid == process.key.tgid) NoteReplaced(process, mapping);
  }
}

// A mapping that is in the scan, but newer than some of the samples that will be named by the scan.
void ProcessTable::NoteReplaced(Process& process, const AnnouncedMapping& mapping) {
  if (mapping.time > process.scanned || mapping.time <= process.code_known_since) return;
  if (!process.mappings.NoteReplaced(mapping.start, mapping.end, mapping.time)) {
    process.code_known_since = process.scanned;
  }
}

void ProcessTable::AnnounceMapping(uint32_t tgid, const Mapping& mapping, MonotonicTime time) {
  main_loop_.Check();
  if (mapping.kind == MappingKind::kJitMemory) return;
  announced_mappings_.push_back({tgid, mapping.start, mapping.end, time});
  if (Entry* entry = FindEntry(tgid)) NoteReplaced(entry->process, announced_mappings_.back());
}

void ProcessTable::ReadIdentity(Process& process) {
  if (const auto text = process.files.ReadProc("status", kMaxProcFileBytes); text.ok()) {
    if (const auto status = ParseStatus(*text); status.ok()) {
      process.namespace_pid = status->innermost_tgid();
      process.uid = status->real_uid;
    }
  }
  process.container = ReadContainer(process.files);
  if (absl::StatusOr<std::string> path = process.files.ReadProcLink("exe"); path.ok() && !path->empty()) {
    process.executable = *std::move(path);
  }
}

// Everything about the process that has the pid since then has to come from /proc, once a sample asks.
void ProcessTable::ForgetBornBefore(uint32_t tgid, MonotonicTime time) {
  const Entry* entry = FindEntry(tgid);
  if (entry == nullptr || entry->process.scanned >= time) return;
  replaced_.push_back(entry->process.key);
  current_.erase(tgid);
}

void ProcessTable::OnFork(uint32_t child, uint32_t parent, MonotonicTime time) {
  main_loop_.Check();
  if (child == parent) return;  // a thread
  const Entry* parent_entry = FindEntry(parent);
  Entry* entry = FindEntry(child);
  if (entry != nullptr && entry->process.scanned >= time && entry->process.exited == MonotonicTime::Max()) {
    // It was read after its birth. Where it was gone by then, the parent is the next best witness.
    if (parent_entry == nullptr || entry->process.files.reachable()) return;
  }
  if (parent_entry == nullptr) return ForgetBornBefore(child, time);
  const Process& from = parent_entry->process;
  if (from.scanned > time && from.code_known_since > time) {
    // It was read after an exec that followed this fork, so it is no witness of the program that the child got.
    return ForgetBornBefore(child, time);
  }
  // Add may move nothing of the parent: entries are held by pointer.
  Entry& added = Add(child, TargetFiles(from.files, child), time);
  added.process.scanned = time;
  Process& process = added.process;
  process.comm = from.comm;
  process.executable = from.executable;
  process.uid = from.uid;
  process.container = from.container;
  process.mappings = from.mappings;
  process.compiles_since = from.compiles_since;
  process.start_stack = from.start_stack;
}

void ProcessTable::AnnounceExec(uint32_t tgid, MonotonicTime time) {
  main_loop_.Check();
  if (Entry* entry = FindEntry(tgid); entry != nullptr && time <= entry->process.scanned) {
    entry->process.code_known_since = std::max(entry->process.code_known_since, time);
  } else if (entry != nullptr) {
    entry->process.exec_announced = std::min(entry->process.exec_announced, time);
  }
  // Also for a known process: a fork or an exit before it in the queue may make that one be read anew.
  if (announced_execs_.size() < kMaxAnnounced) announced_execs_[tgid] = time;
}

bool ProcessTable::OnExec(uint32_t tgid, absl::string_view comm, MonotonicTime time) {
  main_loop_.Check();
  const auto announced = announced_execs_.find(tgid);
  if (announced != announced_execs_.end() && announced->second <= time) announced_execs_.erase(announced);
  Entry* entry = FindEntry(tgid);
  if (entry == nullptr) return false;
  Process& process = entry->process;
  // The announcement of this program is done with, also where a later scan has seen the program already.
  const auto next = announced_execs_.find(tgid);
  process.exec_announced =
      next == announced_execs_.end() || next->second <= process.scanned ? MonotonicTime::Max() : next->second;
  if (time <= process.scanned) return false;
  process.exited = MonotonicTime::Max();  // a thread that calls exec ends the leader and takes its place
  process.comm = std::string(comm);
  process.mappings.Clear();
  BeginProgram(process);
  process.start_stack = 0;  // the next Sweep tells it
  process.files.Reopen();
  process.namespace_pid = 0;
  ReadIdentity(process);
  return true;
}

void ProcessTable::OnComm(uint32_t tgid, absl::string_view comm, MonotonicTime time) {
  main_loop_.Check();
  Entry* entry = FindEntry(tgid);
  if (entry != nullptr && time > entry->process.scanned) entry->process.comm = std::string(comm);
}

void ProcessTable::OnMapping(uint32_t tgid, Mapping mapping, MonotonicTime time) {
  main_loop_.Check();
  while (!announced_mappings_.empty() && announced_mappings_.front().time <= time) announced_mappings_.pop_front();
  Entry* entry = FindEntry(tgid);
  if (entry == nullptr) return;
  if (time <= entry->process.scanned) return entry->process.mappings.ForgetReplacedBefore(time);
  MappingTable& mappings = entry->process.mappings;
  if (mapping.kind == MappingKind::kJitMemory) {
    entry->process.compiles_since = std::min(entry->process.compiles_since, time);
  }
  if (mappings.all().size() >= kMaxMappings) {
    mappings.Clear();
    const MonotonicTime now = clock_.Now();
    if (now.ns - entry->process.scanned.ns >= kRescanNs) {
      entry->process.scanned = now;
      return Scan(*entry);
    }
  }
  mappings.Insert(std::move(mapping));
}

void ProcessTable::OnExit(uint32_t tgid, MonotonicTime time) {
  main_loop_.Check();
  if (Entry* entry = FindEntry(tgid)) entry->process.exited = time;
}

// The exit of a leader need not be the end of the process. Its other threads may go on. One of them may have called
// exec and taken its place. Where the event is older than our first look, the pid may have a new owner since.
void ProcessTable::Sweep() {
  main_loop_.Check();
  for (auto& [tgid, entry] : current_) {
    if (entry->process.exited == MonotonicTime::Max() && !StillLives(*entry) &&
        entry->process.exited == MonotonicTime::Max()) {
      entry->process.exited = clock_.Now();
    }
  }
}

bool ProcessTable::StillLives(Entry& entry) {
  const auto text = entry.process.files.ReadProc("stat", kMaxProcFileBytes);
  if (!text.ok()) return false;
  const auto stat = ParseStat(*text);
  if (!stat.ok()) return false;
  if (!SameStart(entry.process.started_boot_ns, stat->start_ticks * TickNs())) return false;
  if (stat->state != 'Z' && stat->state != 'X') {
    entry.process.exited = MonotonicTime::Max();
    // Unless another exec has been announced, or may have been lost, this is the program that is known.
    if (entry.process.start_stack == 0 && entry.process.exec_announced == MonotonicTime::Max() &&
        entry.process.scanned >= events_lost_) {
      entry.process.start_stack = stat->start_stack;
    }
    return true;
  }
  if (stat->threads < 2) return false;
  entry.process.exited = clock_.Now();  // no event names the last thread's end: asked again later
  return true;
}

std::vector<ProcessKey> ProcessTable::Retire(MonotonicTime before) {
  main_loop_.Check();
  std::vector<ProcessKey> gone = std::exchange(replaced_, {});
  for (auto entry = current_.begin(); entry != current_.end();) {
    if (entry->second->process.exited < before && !StillLives(*entry->second)) {
      gone.push_back(entry->second->process.key);
      entry = current_.erase(entry);
    } else {
      ++entry;
    }
  }
  return gone;
}

}  // namespace clrsampler
