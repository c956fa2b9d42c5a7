#include "pipeline/source_order.h"

#include <utility>

#include "clr/emulated_code.h"
#include "clr/jit_methods.h"
#include "clr/memory/memory_methods.h"
#include "clr/r2r_methods.h"
#include "clr/runtime_facts.h"
#include "symbols/elf_symbols_source.h"
#include "symbols/native_lines/native_lines.h"

namespace clrsampler {
namespace {

// A debug file is opened once. One with 300 MB takes 0.2 s.
constexpr uint64_t kMaxAwaitNs = 3'000'000'000;

// The jitdump's records of precompiled methods are asked last. They name code in images that could not be read.
class PrecompiledFromJitdump : public FrameSource {
 public:
  explicit PrecompiledFromJitdump(JitMethods& methods) : methods_(methods) {}
  std::optional<Resolution> Resolve(const FrameQuery& query) override { return methods_.ResolvePrecompiled(query); }
  // JitMethods, which is in the same list, reads and dates everything that it knows.
  uint64_t Generation(ProcessKey) const override { return 0; }

 private:
  JitMethods& methods_;
};

}  // namespace

std::vector<LineSource*> Sources::line_sources() const {
  std::vector<LineSource*> lines;
  if (pdbs != nullptr && precompiled != nullptr) lines.push_back(precompiled);
  if (pdbs != nullptr && memory != nullptr) lines.push_back(memory);
  if (native_lines != nullptr) lines.push_back(native_lines);
  return lines;
}

const SourceFiles& Sources::source_files() const {
  static const SourceFiles* const kNone = new SourceFiles();
  return pdbs != nullptr ? pdbs->source_files() : *kNone;
}

void Sources::AwaitLines(const Clock& clock) const {
  if (native_lines != nullptr) native_lines->Await(kMaxAwaitNs, clock);
}

std::optional<CodeBody> Sources::CodeOf(const FrameQuery& query) const {
  std::optional<CodeBody> body;
  if (precompiled != nullptr) body = precompiled->BodyOf(query);
  if (!body && memory != nullptr) body = memory->BodyOf(query);
  return body;
}

namespace {

JitMethodsOptions JitOptions(const SourceContext& context, const ReadMemory& read_memory) {
  JitMethodsOptions options;
  options.names = context.names;
  options.read_memory = read_memory;
  options.perf_map_promised = context.perf_map_promised;
  options.perf_map_in_blocks = [&runtimes = context.runtimes](const Process& process) -> std::optional<bool> {
    const std::optional<DotNetRuntime> runtime = runtimes.Find(process);
    if (!runtime) return std::nullopt;
    return WritesPerfMapInBlocks(runtime->version);
  };
  return options;
}

void AddReadyToRun(const SourceContext& context, Sources& sources) {
  R2rMemoryOptions memory;
  memory.read_memory = sources.read_memory;
  auto r2r = std::make_unique<R2rMethods>(&context.images, &context.frames, context.names, std::move(memory),
                                          context.symbol_files);
  r2r->ReportTo(&context.notices);
  r2r->TakeLinesFrom(sources.pdbs.get());
  sources.precompiled = r2r.get();
  sources.in_order.push_back(std::move(r2r));
}

void AddNativeSymbols(const SourceContext& context, Sources& sources) {
  ElfSymbolsSource::Options options;
  options.symbol_files = context.symbol_files;
  options.lines = context.lines.wanted && context.line_helper != nullptr;
  const bool lines = options.lines;
  auto elf = std::make_unique<ElfSymbolsSource>(context.images, context.frames, context.notices, context.names,
                                                std::move(options));
  if (lines) {
    auto native = std::make_unique<NativeLines>(*elf, context.line_helper, context.notices);
    sources.native_lines = native.get();
    sources.in_order.push_back(std::move(native));
  }
  sources.in_order.push_back(std::move(elf));
}

// The names of `files` need no memory. nullptr: there are none.
void AddRuntimeMemory(const SourceContext& context, JitMethods* files, Sources& sources) {
  MemoryMethodsOptions options;
  options.names = context.names;
  options.transient_code = context.transient_code;
  options.try_unknown_runtime = context.try_unknown_runtime;
  options.pdbs = sources.pdbs.get();
  options.keep_code = context.keep_code;
  // Files have names alone: where lines or code are wanted, memory looks at all methods.
  options.earlier = context.lines.wanted || context.keep_code ? nullptr : files;
  if (R2rMethods* r2r = sources.precompiled) {
    options.tables_at = [r2r](const Process& process, const Mapping& mapping, uint64_t address) {
      return r2r->TablesAt(process, mapping, address);
    };
  }
  auto memory = std::make_unique<MemoryMethods>(options, context.runtimes, context.images, context.frames,
                                                context.notices, context.clock);
  sources.memory = memory.get();
  if (files != nullptr) files->PreferStubsOf(*memory);
  sources.in_order.push_back(std::move(memory));
}

}  // namespace

Sources MakeSources(const SourceContext& context) {
  Sources sources;
  if (context.lines.wanted) {
    sources.pdbs = std::make_unique<AssemblyPdbs>(context.lines, context.images, context.notices, context.symbol_files);
  }
  sources.read_memory = ReadMemoryThrough(context.tape, context.broker);
  auto jit = std::make_unique<JitMethods>(JitOptions(context, sources.read_memory), context.frames, context.notices,
                                          context.clock);
  auto precompiled = std::make_unique<PrecompiledFromJitdump>(*jit);
  JitMethods* const files = context.without_files ? nullptr : jit.get();
  if (files != nullptr) sources.in_order.push_back(std::move(jit));
  if (!context.without_images) AddReadyToRun(context, sources);
  AddNativeSymbols(context, sources);
  if (files != nullptr) sources.in_order.push_back(std::move(precompiled));
  if (!context.without_memory) AddRuntimeMemory(context, files, sources);
  sources.in_order.push_back(
      std::make_unique<EmulatedCode>(context.runtimes, context.frames, context.notices, context.clock));
  return sources;
}

}  // namespace clrsampler
