#include "profile/model_sources.h"

#include <set>

namespace clrsampler {

void AddSources(const SourceFiles& sources, ProfileModelBuilder& builder) {
  if (sources.all().empty()) return;
  std::set<StringIndex> names;
  for (const ModelFrame& frame : builder.model().frames) names.insert(frame.source_file);
  for (const StringIndex name : names) {
    const auto found = sources.all().find(builder.model().text(name));
    if (found == sources.all().end() || (found->second.url.empty() && found->second.text.empty())) continue;
    builder.Source(name, builder.String(found->second.url), found->second.text);
  }
}

}  // namespace clrsampler
