#include "pipeline/source_order.h"

#include "clr/jit_methods.h"
#include "clr/r2r_methods.h"
#include "symbols/elf_symbols_source.h"

namespace clrsampler {
namespace {

// The jitdump's records of precompiled methods, asked last: they name code in images that could not be read.
class PrecompiledFromJitdump : public FrameSource {
 public:
  explicit PrecompiledFromJitdump(JitMethods& methods) : methods_(methods) {}
  std::optional<Resolution> Resolve(const FrameQuery& query) override { return methods_.ResolvePrecompiled(query); }
  // What it knows is read, dated and forgotten by JitMethods, which is in the same list.
  uint64_t Generation(ProcessKey) const override { return 0; }
  void Poll(const Process&, MonotonicTime) override {}
  MonotonicTime CompleteUntil(ProcessKey) const override { return MonotonicTime::Max(); }
  void Forget(ProcessKey) override {}

 private:
  JitMethods& methods_;
};

}  // namespace

std::vector<std::unique_ptr<FrameSource>> MakeSources(const SourceContext& context) {
  std::vector<std::unique_ptr<FrameSource>> sources;
  JitMethodsOptions jit_options;
  jit_options.names = context.names;
  auto jit = std::make_unique<JitMethods>(jit_options, context.frames, context.notices);
  auto precompiled = std::make_unique<PrecompiledFromJitdump>(*jit);
  sources.push_back(std::move(jit));
  sources.push_back(std::make_unique<R2rMethods>(&context.images, &context.frames, context.names));
  sources.push_back(std::make_unique<ElfSymbolsSource>(context.images, context.frames, context.notices, context.names));
  sources.push_back(std::move(precompiled));
  return sources;
}

}  // namespace clrsampler
