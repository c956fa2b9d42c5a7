// The types of a runtime in their parts, and the assembly of its own ones.
#include "clr/memory/runtime_memory.h"

namespace clrsampler {
namespace {

constexpr int kSectionsBudget = 200'000;

}  // namespace

std::optional<RuntimeType> RuntimeMemory::TypeOf(uint64_t method_table) {
  MemoryProbe probe(memory_);
  std::optional<RuntimeType> type = types_->Describe(probe, method_table);
  if (!probe.ok()) type.reset();
  return type;
}

std::shared_ptr<const RuntimeModule> RuntimeMemory::CoreLib() {
  MemoryProbe sections(memory_, kSectionsBudget, size_t{64} << 20);
  for (const CodeSection& section : ranges_->Sections(sections)) {
    if (section.kind != CodeSectionKind::kPrecompiled || section.collectible || !sections.ok()) continue;
    MemoryProbe probe(memory_);
    std::shared_ptr<const RuntimeModule> module = modules_->At(probe, section.r2r_module, false);
    if (probe.ok() && module != nullptr && module->names.name == kCoreLib) return module;
  }
  return nullptr;
}

}  // namespace clrsampler
