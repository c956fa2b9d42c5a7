#include "output/otlp.h"

#include <string>
#include <utility>

#include "output/otlp_request.h"

namespace clrsampler {

absl::Status OtlpWriter::Write(const ProfileModel& model, const OutputSink& sink) const {
  const OtlpValues values = OtlpValuesOf(model.meta);
  if (values.factor > 1 && model.total_weight > kMaxTotalWeight / values.factor) {
    return absl::OutOfRangeError("the time of all samples is more than 2^63 ns, which this format can't hold");
  }
  OtlpRequest request(model.meta.creator);
  const size_t number = request.AddModel(model);
  for (size_t row = 0; row < model.samples.size(); ++row) {
    const ModelThread& thread = model.threads[model.samples.thread[row]];
    OtlpResource resource;
    resource.service = resource.executable = std::string(model.text(thread.comm));
    if (const auto labels = model.meta.labels.find(thread.pid); labels != model.meta.labels.end()) {
      resource.labels = labels->second;
      if (!resource.labels.service().empty()) resource.service = resource.labels.service();
    }
    resource.container_id = std::string(model.text(thread.container_id));
    resource.host = model.meta.host;
    request.Add(number, row, resource, values.kind, model.samples.weight_of(row) * values.factor);
  }
  return sink(std::move(request).Encode());
}

}  // namespace clrsampler
