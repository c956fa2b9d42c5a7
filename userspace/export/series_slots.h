// Chooses the processes that have series of their own: the few most active of many that come and go. So the output
// stays bounded whatever runs on the host. Pure.
//
// Slots are sticky. A holder keeps its slot until it has ended and `grace_ns` is over, so that the last values are
// seen, or until another one needs it. Then first those that have ended go, then a living one of less than half the
// activity. Activity is a mean over windows in which a window weighs 0.3. A process that is seen in one window only
// gets none: most processes of a build or a shell script never become series.
//
// A process whose label changes, by exec or prctl, takes its slot anew under the new label. Each label makes new series
// wherever they are kept. So a process keeps the label that it has after `kMaxLabelChanges`.
#ifndef CLRSAMPLER_EXPORT_SERIES_SLOTS_H_
#define CLRSAMPLER_EXPORT_SERIES_SLOTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace clrsampler {

struct SeriesCandidate {
  std::string key;    // who it is
  std::string label;  // under which it is shown, if it has not changed too often; one slot for each
  double activity = 0;
  bool ended = false;
  bool eager = false;  // gets a slot at first sight as long as half of them are free
  uint32_t pid = 0;
};

class SeriesSlots {
 public:
  static constexpr uint32_t kMaxLabelChanges = 16;

  // `still_there` is asked about the holders of slots that are not among the candidates; empty: they have ended when
  // they were quiet for `quiet_ns`.
  SeriesSlots(size_t most, uint64_t grace_ns, uint64_t quiet_ns, std::function<bool(uint32_t pid)> still_there);

  struct Taken {
    size_t slot = 0;
    size_t candidate = 0;  // index of the one that has it now
    std::string label;
  };
  struct Decision {
    std::vector<size_t> freed;  // to be emptied first
    std::vector<Taken> taken;
    std::vector<std::optional<size_t>> slot_of;  // of each candidate; nullopt: none of its own
  };
  // A window ended at `now_ns` with these in it. Each one ends later than the one before, by a clock that nobody sets.
  Decision Next(const std::vector<SeriesCandidate>& candidates, uint64_t now_ns);

 private:
  struct Known {
    double mean = 0;
    size_t windows = 0;
    uint64_t last_ns = 0;
    std::optional<size_t> slot;
    bool is_taken_now = false;  // the slot, in this window
    std::string label;
    uint32_t label_changes = 0;
    std::optional<uint64_t> ended_ns;
    uint32_t pid = 0;
  };
  using Entry = std::map<std::string, Known>::iterator;

  void Remember(const std::vector<SeriesCandidate>& candidates, uint64_t now_ns);
  void Forget(uint64_t now_ns, Decision& decision);
  void Relabel(const std::vector<SeriesCandidate>& candidates, Decision& decision);
  void Admit(const std::vector<SeriesCandidate>& candidates, Decision& decision);
  void Free(Entry entry, Decision& decision);
  void FreeLabel(const std::string& label, Decision& decision);
  // A slot for a newcomer of this activity; nullopt: those who have them are more active.
  std::optional<size_t> FindSlot(double mean, Decision& decision);

  const size_t most_;
  const uint64_t grace_ns_, quiet_ns_;
  const std::function<bool(uint32_t)> still_there_;
  std::map<std::string, Known> known_;
  std::vector<size_t> free_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_EXPORT_SERIES_SLOTS_H_
