#include "export/otlp_window.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "absl/functional/function_ref.h"
#include "output/otlp_request.h"
#include "profile/window_owners.h"

namespace clrsampler {
namespace {

OtlpResource ResourceOf(const WindowProcess& process, PushBy by, const std::string& host) {
  OtlpResource resource;
  resource.service = process.container.empty() ? process.comm : process.container;
  resource.labels = process.labels;
  if (!process.labels.service().empty()) resource.service = process.labels.service();
  resource.executable = process.comm;
  resource.container_id = process.container_id;
  resource.pod_uid = process.pod_uid;
  resource.runtime = process.runtime;
  resource.host = host;
  if (by == PushBy::kProcess) resource.pid = process.pid;
  return resource;
}

class WindowEncoder {
 public:
  WindowEncoder(const Window& window, PushBy by, const std::string& host, size_t most_bytes)
      : models_{&window.cpu, &window.waits, &window.suspend_delay, &window.allocations},
        creator_(window.cpu.meta.creator),
        most_bytes_(most_bytes) {
    std::vector<uint32_t> of_process;
    for (const WindowProcess& process : window.processes) of_process.push_back(Number(ResourceOf(process, by, host)));
    const WindowOwners owners(window);
    for (size_t model = 0; model < models_.size(); ++model) {
      AddRows(model, [&](const ModelThread& thread) {
        const std::optional<size_t> owner = owners.Of(*models_[model], thread);
        return owner ? of_process[*owner] : Number(ResourceOf(AsProcess(*models_[model], thread), by, host));
      });
    }
    // Rows that belong together stay together where a window needs several requests.
    std::stable_sort(rows_.begin(), rows_.end(), [](const Row& a, const Row& b) { return a.resource < b.resource; });
  }

  OtlpParts Encode() {
    OtlpParts result;
    for (size_t begin = 0; begin < rows_.size();) {
      OtlpRequest request(creator_);
      const size_t end = Fill(request, begin, rows_.size());
      if (end == begin) {  // one row is too much
        ++result.too_large;
        result.samples_too_large += SamplesOf(begin, begin + 1);
        ++begin;
        continue;
      }
      if (end < rows_.size()) {  // the row behind it is in there already
        OtlpRequest again(creator_);
        Fill(again, begin, end);
        result.parts.push_back(PartOf(std::move(again), begin, end));
      } else {
        result.parts.push_back(PartOf(std::move(request), begin, end));
      }
      begin = end;
    }
    return result;
  }

 private:
  struct Row {
    uint32_t model;
    uint32_t row;
    uint32_t resource;
  };

  uint32_t Number(OtlpResource resource) {
    const auto [found, added] = numbers_.try_emplace(std::move(resource), static_cast<uint32_t>(resources_.size()));
    if (added) resources_.push_back(&found->first);
    return found->second;
  }

  void AddRows(size_t number, absl::FunctionRef<uint32_t(const ModelThread&)> resource_of) {
    const ProfileModel& model = *models_[number];
    std::vector<uint32_t> of_thread;
    for (const ModelThread& thread : model.threads) of_thread.push_back(resource_of(thread));
    for (size_t row = 0; row < model.samples.size(); ++row) {
      rows_.push_back(
          {static_cast<uint32_t>(number), static_cast<uint32_t>(row), of_thread[model.samples.thread[row]]});
    }
  }

  // Takes the rows from `begin` on as far as they fit. Returns the row behind them, which is in the request too if it
  // is not `end`.
  size_t Fill(OtlpRequest& request, size_t begin, size_t end) const {
    std::array<OtlpKind, kModels> kinds;
    for (size_t i = 0; i < kModels; ++i) {
      request.AddModel(*models_[i]);
      kinds[i] = OtlpValuesOf(models_[i]->meta).kind;
    }
    for (size_t i = begin; i < end; ++i) {
      const Row& row = rows_[i];
      const uint64_t weight = models_[row.model]->samples.weight_of(row.row);
      const bool cpu = row.model == kCpuModel;
      OtlpKind kind = cpu ? OtlpCpuKind(weight) : kinds[row.model];
      kind.timed = cpu && CanBeTimed(*models_[row.model], row.row);
      request.Add(row.model, row.row, *resources_[row.resource], kind, cpu ? 1 : weight);
      if (request.bytes() > most_bytes_) return i;
    }
    return end;
  }

  OtlpPart PartOf(OtlpRequest request, size_t begin, size_t end) const {
    OtlpPart part;
    part.samples = SamplesOf(begin, end);
    part.profiles = request.profiles();
    part.request = std::move(request).Encode();
    return part;
  }

  uint64_t SamplesOf(size_t begin, size_t end) const {
    uint64_t samples = 0;
    for (size_t i = begin; i < end; ++i) samples += rows_[i].model == kCpuModel;
    return samples;
  }

  static constexpr size_t kModels = 4;
  static constexpr uint32_t kCpuModel = 0;
  const std::array<const ProfileModel*, kModels> models_;
  const std::string creator_;
  const size_t most_bytes_;
  std::map<OtlpResource, uint32_t> numbers_;  // whose keys stay where they are
  std::vector<const OtlpResource*> resources_;
  std::vector<Row> rows_;
};

}  // namespace

OtlpParts OtlpRequestsOf(const Window& window, PushBy by, const std::string& host, size_t most_bytes) {
  return WindowEncoder(window, by, host, most_bytes).Encode();
}

}  // namespace clrsampler
