// All processes that samples or side-band events have named, as of the event that is being handled.
//
// Events and samples are applied in the order of their times, so the table always shows the state at the time of the
// current sample. Nothing here needs a time as an argument of a look-up. One scan of /proc gives the state of a process
// that was there before us; from then on events keep it current.
#ifndef CLRSAMPLER_PROCESS_PROCESS_TABLE_H_
#define CLRSAMPLER_PROCESS_PROCESS_TABLE_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "os/clock.h"
#include "process/process.h"
#include "process/program_ends.h"
#include "status/thread_checker.h"

namespace clrsampler {

// Main loop only.
class ProcessTable {
 public:
  // `proc_root` is "/proc" outside tests. `tape`, `broker`: as TargetFiles'.
  ProcessTable(std::string proc_root, const Clock& clock, Tape* tape = nullptr, FileBroker* broker = nullptr)
      : proc_root_(std::move(proc_root)), clock_(clock), tape_(tape), broker_(broker) {}

  // nullptr: never heard of. A process that has exited is still found until Retire.
  Process* Find(uint32_t tgid);

  // The process, read from /proc when it is new. `start_ns` (CLOCK_BOOTTIME, 0: unknown) is its start time; where it
  // differs from the one known, the pid was reused and the former process ends here.
  Process& FindOrScan(uint32_t tgid, uint64_t start_ns);

  // An exec that has arrived but whose turn has not come: a process that is read from here on shows the new program,
  // which its samples from before must not be named by (Process::code_known_since).
  void AnnounceExec(uint32_t tgid, MonotonicTime time);

  // A mapping whose turn has not come, in the same way: older samples must not be named by the image that a scan shows
  // in its range (MappingTable::KnownSince). A sample older than Process::scanned may only be named once all events up
  // to that time have been announced. Memory for compiled code does not count: the kernel announces a mapping again at
  // each mprotect, with which code heaps grow, and the names in them come with times of their own.
  void AnnounceMapping(uint32_t tgid, const Mapping& mapping, MonotonicTime time);

  // Events, in the order of their times. Events from before a process was scanned are in the scan already.
  void OnFork(uint32_t child, uint32_t parent, MonotonicTime time);
  // OnExec: true, all that was known of the process's code is of the program before; false, nothing is: the process is
  // not known, or was read after this exec.
  bool OnExec(uint32_t tgid, absl::string_view comm, MonotonicTime time);
  void OnComm(uint32_t tgid, absl::string_view comm, MonotonicTime time);
  void OnMapping(uint32_t tgid, Mapping mapping, MonotonicTime time);
  void OnExit(uint32_t tgid, MonotonicTime time);

  // Events of before `now` were lost, and with them perhaps an exec or a mapping. All that is known of a process counts
  // no more until /proc is read again, which the next look for it does.
  void OnEventsLost(MonotonicTime now) { events_lost_ = now; }

  // Removes processes that exited before `before` and gives them out, so that sources can forget them. One that /proc
  // still shows alive stays.
  std::vector<ProcessKey> Retire(MonotonicTime before);

  // Looks whether processes are still there: an exit whose event was lost would keep what is known of them for ever.
  void Sweep();

  // For each living or exited process still in the table.
  template <typename Visitor>
  void ForEach(Visitor&& visitor) {
    for (auto& [tgid, entry] : current_) visitor(entry->process);
  }
  size_t size() const { return current_.size(); }

  // Its owner announces there what has become of the processes that Retire and OnExec tell of. Where the event of an
  // exec was lost, the table announces it when /proc shows the new program.
  ProgramEnds& ends() { return *ends_; }

 private:
  struct Entry {
    explicit Entry(Process p) : process(std::move(p)) {}
    Process process;
  };

  // Only between an exec's arrival and its turn; beyond the bound a very short-lived process may lack names.
  static constexpr size_t kMaxAnnounced = 100'000;

  // As many events wait in the caller's queue, which sets the bound.
  struct AnnouncedMapping {
    uint32_t tgid;
    uint64_t start;
    uint64_t end;
    MonotonicTime time;
  };

  static void NoteReplaced(Process& process, const AnnouncedMapping& mapping);
  Entry& Add(uint32_t tgid, TargetFiles files, MonotonicTime time);
  void Scan(Entry& entry);
  void ScanAgain(Entry& entry);
  void BeginProgram(Process& process);
  void ForgetBornBefore(uint32_t tgid, MonotonicTime time);
  void ReadIdentity(Process& process);
  bool StillLives(Entry& entry);
  Entry* FindEntry(uint32_t tgid);

  std::string proc_root_;
  const Clock& clock_;
  Tape* tape_;
  FileBroker* broker_;
  std::shared_ptr<ProgramEnds> ends_ = std::make_shared<ProgramEnds>();
  uint32_t next_incarnation_ = 1;
  absl::btree_map<uint32_t, std::unique_ptr<Entry>> current_;  // in an order that is the same in every run
  absl::flat_hash_map<uint32_t, MonotonicTime> announced_execs_;
  std::deque<AnnouncedMapping> announced_mappings_;  // in the order of their arrival
  MonotonicTime events_lost_ = MonotonicTime::Min();
  std::vector<ProcessKey> replaced_;  // whose pid was taken over; given out by the next Retire
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROCESS_PROCESS_TABLE_H_
