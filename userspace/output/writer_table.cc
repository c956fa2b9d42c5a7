#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "output/callchain.h"
#include "output/firefox_profile.h"
#include "output/folded.h"
#include "output/html.h"
#include "output/jitdump_profile.h"
#include "output/mip_from_samples.h"
#include "output/order.h"
#include "output/otlp.h"
#include "output/perfetto.h"
#include "output/pprof.h"
#include "output/profile_json.h"
#include "output/profile_writer.h"
#include "output/speedscope.h"
#include "output/svg.h"

namespace clrsampler {

const std::vector<WriterRow>& WriterTable() {
  static const auto* rows = new std::vector<WriterRow>{
      {"folded",
       {".folded", ".collapsed", ".txt"},
       "clrsampler convert FILE profile.html, and open that in a browser",
       false,
       false,
       false,
       false,
       false,
       [](const WriterOptions& options) -> std::unique_ptr<ProfileWriter> {
         return std::make_unique<FoldedWriter>(options);
       }},
      {"json",
       {".json"},
       "clrsampler convert FILE profile.html, and open that in a browser",
       true,
       false,
       false,
       false,
       true,
       [](const WriterOptions&) -> std::unique_ptr<ProfileWriter> { return std::make_unique<ProfileJsonWriter>(); }},
      {"pprof",
       {".pb.gz", ".pprof"},
       "go tool pprof -http=: FILE",
       true,
       false,
       false,
       false,
       false,
       [](const WriterOptions&) -> std::unique_ptr<ProfileWriter> { return std::make_unique<PprofWriter>(); }},
      {"speedscope",
       {".speedscope.json"},
       "open FILE at https://www.speedscope.app",
       true,
       false,
       false,
       false,
       false,
       [](const WriterOptions&) -> std::unique_ptr<ProfileWriter> { return std::make_unique<SpeedscopeWriter>(); }},
      {"firefox",
       {".profile.json.gz"},
       "open FILE at https://profiler.firefox.com",
       true,
       false,
       false,
       false,
       false,
       [](const WriterOptions&) -> std::unique_ptr<ProfileWriter> { return std::make_unique<FirefoxProfileWriter>(); }},
      {"perfetto",
       {".perfetto", ".perfetto-trace", ".pftrace"},
       "open FILE at https://ui.perfetto.dev",
       true,
       false,
       false,
       false,
       false,
       [](const WriterOptions&) -> std::unique_ptr<ProfileWriter> { return std::make_unique<PerfettoWriter>(); }},
      {"otlp",
       {".otlp"},
       "send FILE to a collector: docs/formats.md",
       true,
       false,
       false,
       false,
       false,
       [](const WriterOptions&) -> std::unique_ptr<ProfileWriter> { return std::make_unique<OtlpWriter>(); }},
      {"html",
       {".html", ".htm"},
       "open FILE in a browser",
       true,
       false,
       false,
       false,
       true,
       [](const WriterOptions&) -> std::unique_ptr<ProfileWriter> { return std::make_unique<HtmlWriter>(); }},
      {"svg",
       {".svg"},
       "open FILE in a browser",
       false,
       false,
       false,
       false,
       false,
       [](const WriterOptions&) -> std::unique_ptr<ProfileWriter> { return std::make_unique<SvgWriter>(); }},
      {"order",
       {".order"},
       "give FILE to your linker: docs/compiler-feedback.md",
       true,
       true,
       true,
       false,
       false,
       [](const WriterOptions& options) -> std::unique_ptr<ProfileWriter> {
         return std::make_unique<OrderWriter>(options);
       }},
      {"callchain",
       {".callchain.json"},
       "give FILE to crossgen2: docs/compiler-feedback.md",
       false,
       false,
       true,
       false,
       false,
       [](const WriterOptions& options) -> std::unique_ptr<ProfileWriter> {
         return std::make_unique<CallchainWriter>(options);
       }},
      {"mip",
       {".mip"},
       "give FILE to your compiler: docs/compiler-feedback.md",
       true,
       true,
       true,
       false,
       false,
       [](const WriterOptions& options) -> std::unique_ptr<ProfileWriter> {
         return std::make_unique<MipFromSamplesWriter>(options);
       }},
      {"jitdump",
       {".jitdump", ".dump"},
       "perf inject --jit takes FILE: docs/formats.md",
       true,
       false,
       false,
       true,
       true,
       [](const WriterOptions&) -> std::unique_ptr<ProfileWriter> { return std::make_unique<JitdumpProfileWriter>(); }},
  };
  return *rows;
}

const WriterRow* WriterOfFormat(absl::string_view format) {
  for (const WriterRow& row : WriterTable()) {
    if (row.format == format) return &row;
  }
  return nullptr;
}

const WriterRow* WriterOfPath(absl::string_view path) {
  const WriterRow* best = nullptr;
  size_t best_size = 0;
  for (const WriterRow& row : WriterTable()) {
    for (const absl::string_view extension : row.extensions) {
      if (extension.size() <= best_size || !absl::EndsWithIgnoreCase(path, extension)) continue;
      best = &row;
      best_size = extension.size();
    }
  }
  return best;
}

}  // namespace clrsampler
