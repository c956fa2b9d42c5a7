#include "output/html_times.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "output/deflate_base64.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr uint64_t kFinestNs = 20'000'000;
constexpr uint64_t kMillisecondsOfFinest = 20;
constexpr uint64_t kMostSteps = uint64_t{1} << 23;  // two days of the finest; the page has a number for each
constexpr size_t kSampledCells = 16;                // one of these is packed to see how long all would be
constexpr double kSurely = 1.1;                     // by how much that may be wrong

void AppendVarint(uint64_t value, std::string& out) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

// The rows that have a time, cell by cell, and in the order of the times in each cell.
class TimedCells {
 public:
  TimedCells(const SampleColumns& samples, std::span<const uint32_t> cell_of_row, size_t cells) : begin_(cells + 1, 0) {
    for (size_t row = 0; row < samples.size(); ++row) {
      if (samples.time_of(row) == kNoTime) continue;
      ++begin_[cell_of_row[row] + 1];
      last_ = std::max(last_, samples.time_of(row) / kFinestNs);
    }
    std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
    if (last_ > std::numeric_limits<uint32_t>::max()) return;
    std::vector<uint32_t> next(begin_.begin(), begin_.end() - 1);
    units_.resize(begin_.back());
    if (!samples.weight.empty()) weights_.resize(units_.size());
    for (size_t row = 0; row < samples.size(); ++row) {
      if (samples.time_of(row) == kNoTime) continue;
      const uint32_t at = next[cell_of_row[row]]++;
      units_[at] = static_cast<uint32_t>(samples.time_of(row) / kFinestNs);
      if (!weights_.empty()) weights_[at] = samples.weight_of(row);
    }
    for (size_t cell = 0; cell < cells; ++cell) Sort(begin_[cell], begin_[cell + 1]);
  }

  bool empty() const { return begin_.back() == 0; }
  size_t size() const { return begin_.size() - 1; }
  uint64_t last() const { return last_; }  // in units of the finest steps

  // visit(step, weight) for each step of so many finest ones in which the cell has any.
  template <typename Visitor>
  void ForEachStep(size_t cell, uint32_t units, Visitor&& visit) const {
    for (uint32_t at = begin_[cell]; at < begin_[cell + 1];) {
      const uint32_t step = units_[at] / units;
      uint64_t weight = 0;
      for (; at < begin_[cell + 1] && units_[at] / units == step; ++at) weight += weights_.empty() ? 1 : weights_[at];
      visit(step, weight);
    }
  }

 private:
  void Sort(uint32_t first, uint32_t last) {
    if (std::is_sorted(units_.begin() + first, units_.begin() + last)) return;
    std::vector<std::pair<uint32_t, uint64_t>> sorted;
    for (uint32_t at = first; at < last; ++at) sorted.emplace_back(units_[at], weights_.empty() ? 1 : weights_[at]);
    std::sort(sorted.begin(), sorted.end());
    for (uint32_t at = first; at < last; ++at) {
      units_[at] = sorted[at - first].first;
      if (!weights_.empty()) weights_[at] = sorted[at - first].second;
    }
  }

  std::vector<uint32_t> begin_, units_;
  std::vector<uint64_t> weights_;  // empty: all are 1
  uint64_t last_ = 0;
};

struct Columns {
  std::string head, counts, steps, weights;
};

// The columns of each `every`th cell.
Columns Encode(const TimedCells& cells, uint32_t units, size_t every) {
  std::vector<uint32_t> counts, order;
  uint64_t entries = 0;
  Columns columns;
  for (size_t cell = 0; cell < cells.size(); cell += every) {
    uint32_t count = 0;
    cells.ForEachStep(cell, units, [&](uint32_t, uint64_t) { ++count; });
    AppendVarint(count, columns.counts);
    counts.push_back(count);
    entries += count;
  }
  AppendVarint(units * kMillisecondsOfFinest, columns.head);
  AppendVarint(cells.last() / units + 1, columns.head);
  AppendVarint(entries, columns.head);
  order.resize(counts.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return counts[a] > counts[b]; });
  for (const uint32_t at : order) {
    uint32_t before = 0;
    cells.ForEachStep(at * every, units, [&](uint32_t step, uint64_t weight) {
      AppendVarint(step - std::exchange(before, step), columns.steps);
      AppendVarint(weight, columns.weights);
    });
  }
  return columns;
}

// "": longer than `most`.
absl::StatusOr<std::string> Pack(const Columns& columns, size_t most) {
  std::string packed;
  const OutputSink sink = [&](absl::string_view text) {
    packed.append(text.data(), text.size());
    return packed.size() <= most ? absl::OkStatus() : absl::OutOfRangeError("too long");
  };
  DeflateBase64 deflate(sink);
  for (const std::string* column : {&columns.head, &columns.counts, &columns.steps, &columns.weights}) {
    const absl::Status status = deflate.Append(*column);
    if (absl::IsOutOfRange(status)) return "";
    RETURN_IF_ERROR(status);
  }
  const absl::Status status = deflate.Finish();
  if (absl::IsOutOfRange(status)) return "";
  RETURN_IF_ERROR(status);
  return packed;
}

}  // namespace

absl::StatusOr<std::string> PackHtmlTimes(const SampleColumns& samples, std::span<const uint32_t> cell_of_row,
                                          size_t cells, std::span<const uint32_t> steps, size_t most_bytes) {
  if (samples.time_ns.empty()) return "";
  const TimedCells timed(samples, cell_of_row, cells);
  if (timed.empty() || timed.last() > std::numeric_limits<uint32_t>::max()) return "";
  for (const uint32_t units : steps) {
    if (timed.last() / units >= kMostSteps) continue;
    if (cells >= kSampledCells * kSampledCells) {
      const auto limit = static_cast<size_t>(kSurely * static_cast<double>(most_bytes) / kSampledCells);
      absl::StatusOr<std::string> part = Pack(Encode(timed, units, kSampledCells), limit);
      if (!part.ok()) return part;
      if (part->empty()) continue;
    }
    absl::StatusOr<std::string> packed = Pack(Encode(timed, units, 1), most_bytes);
    if (!packed.ok() || !packed->empty()) return packed;
  }
  return "";
}

}  // namespace clrsampler
