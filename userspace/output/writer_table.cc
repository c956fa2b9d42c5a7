#include "output/folded.h"
#include "output/profile_writer.h"

namespace clrsampler {

const std::vector<WriterRow>& WriterTable() {
  static const auto* rows = new std::vector<WriterRow>{
      {"folded", "one line a stack, as flamegraph.pl, difffolded.pl, inferno and speedscope read it",
       [](const WriterOptions& options) {
         return std::unique_ptr<ProfileWriter>(std::make_unique<FoldedWriter>(options));
       }},
  };
  return *rows;
}

}  // namespace clrsampler
