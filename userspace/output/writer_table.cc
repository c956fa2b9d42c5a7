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
       "one line a stack, as flamegraph.pl, difffolded.pl, inferno and speedscope read it",
       "clrsampler convert FILE profile.html, and open that in a browser",
       false,
       false,
       false,
       false,
       [](const WriterOptions& options) -> std::unique_ptr<ProfileWriter> {
         return std::make_unique<FoldedWriter>(options);
       }},
      {"json",
       {".json"},
       "our own format, which loses nothing: each sample with time, thread and state",
       "clrsampler convert FILE profile.html, and open that in a browser",
       true,
       false,
       false,
       false,
       [](const WriterOptions&) -> std::unique_ptr<ProfileWriter> { return std::make_unique<ProfileJsonWriter>(); }},
      {"pprof",
       {".pb.gz", ".pprof"},
       "for go tool pprof and most profiling services",
       "go tool pprof -http=: FILE",
       true,
       false,
       false,
       false,
       [](const WriterOptions&) -> std::unique_ptr<ProfileWriter> { return std::make_unique<PprofWriter>(); }},
      {"speedscope",
       {".speedscope.json"},
       "for speedscope.app, a graph for each process",
       "open FILE at https://www.speedscope.app",
       true,
       false,
       false,
       false,
       [](const WriterOptions&) -> std::unique_ptr<ProfileWriter> { return std::make_unique<SpeedscopeWriter>(); }},
      {"firefox",
       {".profile.json.gz"},
       "for profiler.firefox.com: a lane for each thread, over time",
       "open FILE at https://profiler.firefox.com",
       true,
       false,
       false,
       false,
       [](const WriterOptions&) -> std::unique_ptr<ProfileWriter> { return std::make_unique<FirefoxProfileWriter>(); }},
      {"perfetto",
       {".perfetto", ".perfetto-trace", ".pftrace"},
       "for ui.perfetto.dev and trace_processor: a lane for each thread, over time",
       "open FILE at https://ui.perfetto.dev",
       true,
       false,
       false,
       false,
       [](const WriterOptions&) -> std::unique_ptr<ProfileWriter> { return std::make_unique<PerfettoWriter>(); }},
      {"otlp",
       {".otlp"},
       "OpenTelemetry's profiles: one request for a collector, not compressed",
       "send FILE to a collector: docs/formats.md",
       true,
       false,
       false,
       false,
       [](const WriterOptions&) -> std::unique_ptr<ProfileWriter> { return std::make_unique<OtlpWriter>(); }},
      {"html",
       {".html", ".htm"},
       "an interactive flame graph: one page that opens in any browser, with everything in it",
       "open FILE in a browser",
       true,
       false,
       false,
       false,
       [](const WriterOptions&) -> std::unique_ptr<ProfileWriter> { return std::make_unique<HtmlWriter>(); }},
      {"svg",
       {".svg"},
       "a flame graph as a still picture",
       "open FILE in a browser",
       false,
       false,
       false,
       false,
       [](const WriterOptions&) -> std::unique_ptr<ProfileWriter> { return std::make_unique<SvgWriter>(); }},
      {"order",
       {".order"},
       "the functions of a native image, one a line, as linkers take an order",
       "give FILE to your linker: docs/compiler-feedback.md",
       true,
       true,
       true,
       false,
       [](const WriterOptions& options) -> std::unique_ptr<ProfileWriter> {
         return std::make_unique<OrderWriter>(options);
       }},
      {"callchain",
       {".callchain.json"},
       "callers and callees among managed methods, as crossgen2 takes them",
       "give FILE to crossgen2: docs/compiler-feedback.md",
       false,
       false,
       true,
       false,
       [](const WriterOptions& options) -> std::unique_ptr<ProfileWriter> {
         return std::make_unique<CallchainWriter>(options);
       }},
      {"mip",
       {".mip"},
       "a Machine IR Profile of an image, as clrsampler mip takes it",
       "give FILE to your compiler: docs/compiler-feedback.md",
       true,
       true,
       true,
       false,
       [](const WriterOptions& options) -> std::unique_ptr<ProfileWriter> {
         return std::make_unique<MipFromSamplesWriter>(options);
       }},
      {"jitdump",
       {".jitdump", ".dump"},
       "the machine code of one process with names and lines, for perf inject --jit",
       "perf inject --jit takes FILE: docs/formats.md",
       true,
       false,
       false,
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
