// The fields of a protobuf message of the pprof format, one after the other.
#ifndef CLRSAMPLER_FORMATS_PROFILE_PPROF_MESSAGE_H_
#define CLRSAMPLER_FORMATS_PROFILE_PPROF_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "protozero/pbf_message.hpp"

namespace clrsampler {

// Calls visit(field) for each field; one of another wire type than the visitor asks for is skipped there.
template <typename Fields, typename Visitor>
void ForEachField(protozero::data_view bytes, Visitor&& visit) {
  protozero::pbf_message<Fields> message(bytes);
  while (message.next()) {
    if (!visit(message)) message.skip();
  }
}

template <typename Fields>
bool TakeNumber(protozero::pbf_message<Fields>& message, uint64_t& out) {
  if (message.wire_type() != protozero::pbf_wire_type::varint) return false;
  out = message.get_uint64();
  return true;
}

// A repeated number: packed, or one in each field. Those behind the first `max` are passed over.
template <typename Fields>
bool TakeNumbers(protozero::pbf_message<Fields>& message, size_t max, std::vector<uint64_t>& out) {
  if (message.wire_type() == protozero::pbf_wire_type::length_delimited) {
    for (const uint64_t value : message.get_packed_uint64()) {
      if (out.size() >= max) break;
      out.push_back(value);
    }
    return true;
  }
  uint64_t value = 0;
  if (!TakeNumber(message, value)) return false;
  if (out.size() < max) out.push_back(value);
  return true;
}

template <typename Fields>
bool IsMessage(const protozero::pbf_message<Fields>& message) {
  return message.wire_type() == protozero::pbf_wire_type::length_delimited;
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_PROFILE_PPROF_MESSAGE_H_
