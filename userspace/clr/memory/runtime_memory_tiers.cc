// The tiers of bodies of code.
#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "clr/memory/quick_code.h"
#include "clr/memory/runtime_memory.h"
#include "formats/names/tier.h"

namespace clrsampler {
namespace {

constexpr uint32_t kMaxVersionStates = 1 << 20;

// NativeCodeVersion::OptimizationTier, src/coreclr/vm/codeversion.h.
constexpr absl::string_view kVersionTiers[] = {tier::kQuickJitted, tier::kOptimizedTier1, tier::kOptimizedTier1Osr,
                                               tier::kOptimized,   tier::kInstrumented,   tier::kInstrumentedOptimized};

// Module::m_dwTransientFlags, src/coreclr/vm/ceeload.h: DEBUGGER_ALLOW_JIT_OPTS_PRIV. It is clear in a module whose
// assembly's DebuggableAttribute has DisableOptimizations, and where a debugger wanted so.
constexpr uint32_t kModuleIsOptimised = 0x800;

}  // namespace

std::string RuntimeMemory::TierOf(MemoryProbe& probe, const RuntimeMethod& method, uint64_t method_desc, uint64_t code,
                                  const MethodCode* compiled) {
  if (method.dynamic) return UntieredTierOf(method);
  // A tier that can't be read is no reason to lose the name.
  MemoryProbe own(memory_, 256);
  if (const uint64_t state = VersionState(own, method, method_desc); state != 0) {
    uint64_t node = own.Pointer(state + layout_.version_state.first_node);
    for (int i = 0; node != 0 && i < 64 && own.ok(); ++i) {
      const auto fields = own.Block<RuntimeLayout::VersionNode::kBytes>(node);
      if (!own.Require(FieldOf<uint64_t>(fields, layout_.version_node.method_desc) == method_desc,
                       "a version of another method")) {
        return "";
      }
      if (FieldOf<uint64_t>(fields, layout_.version_node.code) == code) {
        const uint32_t tier = FieldOf<uint32_t>(fields, layout_.version_node.tier);
        return std::string(tier < std::size(kVersionTiers) ? kVersionTiers[tier] : "");
      }
      node = FieldOf<uint64_t>(fields, layout_.version_node.next);
    }
  }
  if (!own.ok() || !probe.ok()) return "";
  if (compiled == nullptr) return std::string(tier::kPrecompiled);
  if (!method.tiering_eligible) return UntieredTierOf(method);
  // On .NET 8 such a method takes part in tiering. It begins in the last tier.
  if ((method.implementation & kMethodImplAggressiveOptimization) != 0) return std::string(tier::kOptimizedTier1);
  return IsQuickCode(memory_, layout_.debug_info, method, *compiled) ? std::string(tier::kQuickJitted) : "";
}

// As the runtime decides it (MethodDesc::IsJitOptimizationDisabled, src/coreclr/vm/method.cpp). A profiler may have
// optimisation turned off for the whole process, and the compiler itself for a huge method: that is not to be seen.
std::string RuntimeMemory::UntieredTierOf(const RuntimeMethod& method) {
  if ((method.implementation & kMethodImplNoOptimization) != 0) return std::string(tier::kMinOptJitted);
  MemoryProbe probe(memory_);
  const uint32_t flags = probe.Value<uint32_t>(method.module_address + layout_.module.flags);
  if (!probe.ok()) return "";
  if ((flags & kModuleIsOptimised) == 0) return std::string(tier::kMinOptJitted);
  if (!optimises_.has_value()) optimises_ = !place_.compiles_with_min_opts || !place_.compiles_with_min_opts();
  return std::string(*optimises_ ? tier::kOptimized : tier::kMinOptJitted);
}

uint64_t RuntimeMemory::VersionState(MemoryProbe& probe, const RuntimeMethod& method, uint64_t method_desc) {
  if (layout_.method_desc.code_data) return method.code_data == 0 ? 0 : probe.Pointer(method.code_data);
  RefreshVersionTable();
  const auto known = version_states_.find(method_desc);
  return known == version_states_.end() ? 0 : known->second;
}

void RuntimeMemory::RefreshVersionTable() {
  MemoryProbe probe(memory_, kListBudget, size_t{64} << 20);
  const uint64_t domain = probe.Pointer(probe.Pointer(place_.dac_table + 8 * layout_.version_table.app_domain_entry));
  const uint64_t table = probe.Pointer(domain + layout_.version_table.table);
  // SHash: table, size, count, occupied, maximum.
  const auto sizes = probe.Block<16>(domain + layout_.version_table.table + 8);
  const uint32_t size = FieldOf<uint32_t>(sizes, 0), count = FieldOf<uint32_t>(sizes, 4);
  const uint32_t occupied = FieldOf<uint32_t>(sizes, 8), most = FieldOf<uint32_t>(sizes, 12);
  if (!probe.ok() || (table == version_table_ && count == version_count_)) return;
  if (count > occupied || occupied > most || most > size || size > kMaxVersionStates) return;
  std::vector<uint64_t> states;
  constexpr uint32_t kStep = 8192;
  while (states.size() < size) {
    const size_t done = states.size();
    states.resize(std::min<size_t>(size, done + kStep));
    if (!probe.Read(table + 8 * done, std::as_writable_bytes(std::span(states).subspan(done)))) return;
  }
  version_table_ = table;
  version_count_ = count;
  absl::flat_hash_map<uint64_t, uint64_t> known;  // state -> MethodDesc, of those that were read before
  for (const auto& [method, state] : version_states_) known.emplace(state, method);
  version_states_.clear();
  for (const uint64_t state : states) {
    if (state <= 1) continue;  // empty, deleted
    const auto before = known.find(state);
    const uint64_t method = before != known.end() ? before->second : probe.Pointer(state);
    if (method != 0) version_states_.emplace(method, state);
  }
}

}  // namespace clrsampler
