// The sources of names of a run, in the order in which they are asked.
#ifndef CLRSAMPLER_PIPELINE_SOURCE_ORDER_H_
#define CLRSAMPLER_PIPELINE_SOURCE_ORDER_H_

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "clr/lines/assembly_pdbs.h"
#include "clr/runtime_discovery.h"
#include "formats/names/frame_text.h"
#include "os/clock.h"
#include "os/tape.h"
#include "process/image_files.h"
#include "process/target_memory.h"
#include "status/notices.h"
#include "symbol_server/symbol_files.h"
#include "symbols/code_source.h"
#include "symbols/frame_source.h"
#include "symbols/line_source.h"
#include "symbols/source_files.h"

namespace clrsampler {

class LineHelper;
class MemoryMethods;
class NativeLines;
class R2rMethods;

// Borrows everything it is given; those outlive the sources.
struct SourceContext {
  FrameTable& frames;
  ImageFiles& images;
  RuntimeDiscovery& runtimes;
  Notices& notices;
  const Clock& clock;
  NameStyle names;
  SymbolFiles* symbol_files = nullptr;  // nullptr: no symbol server is named
  // Told where a process keeps code that may be freed; may be empty.
  std::function<void(const Process&, const wire_transient_code&, std::span<const wire_transient_heap>)> transient_code =
      nullptr;
  // Whether a process was told to write a perf map; may be empty.
  std::function<bool(ProcessKey)> perf_map_promised = nullptr;
  bool try_unknown_runtime = false;  // MemoryMethodsOptions
  LineOptions lines = {};
  std::shared_ptr<LineHelper> line_helper = nullptr;  // nullptr: native code has no lines
  bool keep_code = false;                             // of the methods that samples meet, for Sources::CodeOf
  // Left out, as by `names --without`: to compare one source with another.
  bool without_files = false;   // jitdump, perf map
  bool without_images = false;  // precompiled images
  bool without_memory = false;
  FileBroker* broker = nullptr;
  Tape* tape = nullptr;  // has the answers where there is one; so has that of `images`
};

struct Sources {
  std::unique_ptr<AssemblyPdbs> pdbs;  // nullptr: nobody wants lines; outlives the sources, which borrow it
  std::vector<std::unique_ptr<FrameSource>> in_order;
  MemoryMethods* memory = nullptr;      // one of them; nullptr: left out
  R2rMethods* precompiled = nullptr;    // likewise
  NativeLines* native_lines = nullptr;  // likewise
  ReadMemory read_memory;

  std::vector<FrameSource*> borrowed() const {
    std::vector<FrameSource*> sources;
    for (const auto& source : in_order) sources.push_back(source.get());
    return sources;
  }
  // None where nobody wants lines.
  std::vector<LineSource*> line_sources() const;
  const SourceFiles& source_files() const;
  // All samples that there are have been observed: waits for lines that are on the way, for a moment at most.
  void AwaitLines(const Clock& clock) const;
  // The body from whichever source has it; nullopt as in CodeSource.
  std::optional<CodeBody> CodeOf(const FrameQuery& query) const;
};

Sources MakeSources(const SourceContext& context);

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_SOURCE_ORDER_H_
