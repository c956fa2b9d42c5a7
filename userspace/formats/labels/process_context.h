// The process context: attributes that a program publishes about itself in its own memory.
//
// Source: open-telemetry/opentelemetry-specification, oteps/profiles/4719-process-ctx.md, version 2 of the header. In
// the payload only texts among the resource's attributes are read.
#ifndef CLRSAMPLER_FORMATS_LABELS_PROCESS_CONTEXT_H_
#define CLRSAMPLER_FORMATS_LABELS_PROCESS_CONTEXT_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "formats/labels/process_labels.h"

namespace clrsampler {

// Whether a mapping of this path, as /proc/PID/maps has it, may hold a header.
bool IsContextMapping(absl::string_view path);

inline constexpr size_t kContextHeaderBytes = 32;
inline constexpr size_t kMaxContextBytes = 16 * 1024;  // more is no set of attributes

struct ContextHeader {
  uint32_t payload_bytes = 0;  // at most kMaxContextBytes
  uint64_t published_ns = 0;   // 0: the process is changing it
  uint64_t payload = 0;        // an address in the process
};

// InvalidArgument: no header of this version. ResourceExhausted: the payload is too large.
absl::StatusOr<ContextHeader> ParseContextHeader(std::span<const std::byte> bytes);

// InvalidArgument: the bytes are no protobuf message. Where an attribute is there twice, the first one counts.
absl::StatusOr<ProcessLabels> ParseContextPayload(std::span<const std::byte> bytes);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_LABELS_PROCESS_CONTEXT_H_
