// The head of a request out of its fields, which are a client's bytes. Pure.
//
// A head that two readers could read in two ways is refused. A proxy before us that takes the other one of two Host
// fields would let through what it should not (RFC 9112 3.2, 6.3).
#ifndef CLRSAMPLER_EXPORT_HTTP_HEAD_H_
#define CLRSAMPLER_EXPORT_HTTP_HEAD_H_

#include <optional>
#include <span>

#include "absl/strings/string_view.h"
#include "export/http_message.h"

namespace clrsampler {

struct HttpField {
  absl::string_view name, value;
};

// Fills in what comes out of fields; `request.method` is there already. The answer that refuses the request, or
// nullopt.
std::optional<HttpAnswer> ReadHead(std::span<const HttpField> fields, HttpRequest& request);

}  // namespace clrsampler

#endif  // CLRSAMPLER_EXPORT_HTTP_HEAD_H_
