// OpenTelemetry's profiles: one request for the profiles service of a collector, as bytes of protobuf, not compressed.
//
// There is a resource for each process name and container. Its samples carry process and thread as attributes, because
// many backends make a label of every attribute of a resource. Tables are shared by the request. They hold nothing
// twice and nothing that is not used. Each begins with its zero value, as the format's rules demand (otlp_fields.h).
//
//   view                  type of samples               period
//   cpu                   samples, count                cpu, nanoseconds
//   off-cpu, wall, ...    off_cpu (wall), nanoseconds   none
//   alloc                 alloc_space, bytes            memory, bytes: backends name such profiles by it
//   exception             exceptions, count             exceptions, count: the same
//
// Frames without an image that has a build id have no mapping: a mapping must say which build it is of.
#ifndef CLRSAMPLER_OUTPUT_OTLP_H_
#define CLRSAMPLER_OUTPUT_OTLP_H_

#include "output/profile_writer.h"

namespace clrsampler {

class OtlpWriter : public ProfileWriter {
 public:
  absl::Status Write(const ProfileModel& model, const OutputSink& sink) const override;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_OTLP_H_
