// One field of a protobuf message, where bytes are expected.
#ifndef CLRSAMPLER_FORMATS_LABELS_FIELD_BYTES_H_
#define CLRSAMPLER_FORMATS_LABELS_FIELD_BYTES_H_

#include <optional>

#include "absl/strings/string_view.h"
#include "protozero/pbf_message.hpp"

namespace clrsampler {

// The last field of this number that holds bytes, as protobuf has it. Throws protozero's exceptions.
template <typename Fields>
std::optional<protozero::data_view> BytesOf(protozero::data_view bytes, Fields field) {
  std::optional<protozero::data_view> found;
  protozero::pbf_message<Fields> message(bytes);
  while (message.next()) {
    if (message.tag() == field && message.wire_type() == protozero::pbf_wire_type::length_delimited) {
      found = message.get_view();
    } else {
      message.skip();
    }
  }
  return found;
}

inline absl::string_view TextOf(protozero::data_view bytes) { return {bytes.data(), bytes.size()}; }

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_LABELS_FIELD_BYTES_H_
