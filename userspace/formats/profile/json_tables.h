// Runs nlohmann's SAX parser over a profile in JSON.
#ifndef CLRSAMPLER_FORMATS_PROFILE_JSON_TABLES_H_
#define CLRSAMPLER_FORMATS_PROFILE_JSON_TABLES_H_

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "formats/profile/profile_model.h"

namespace clrsampler {

// `events` takes the parser's events and has a status() of its own; `damaged` is the error of text that is no JSON.
template <typename Events>
absl::Status ParseTables(absl::string_view text, Events& events, ProfileModelBuilder& builder,
                         const absl::Status& damaged) {
  if (nlohmann::json::sax_parse(text.begin(), text.end(), &events)) return absl::OkStatus();
  if (!events.status().ok()) return events.status();
  if (!builder.ok()) return std::move(builder).Build().status();
  return damaged;
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_PROFILE_JSON_TABLES_H_
