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
constexpr int64_t kVersionWorkPerIteration = 1 << 15;
constexpr int64_t kWorkOfNewState = 10;  // a state that was not seen before is read by itself

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
  const std::optional<uint64_t> state = VersionState(own, method, method_desc);
  if (!state) return "";
  if (*state != 0) {
    uint64_t node = own.Pointer(*state + layout_.version_state.first_node);
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

std::optional<uint64_t> RuntimeMemory::VersionState(MemoryProbe& probe, const RuntimeMethod& method,
                                                    uint64_t method_desc) {
  if (layout_.method_desc.code_data) return method.code_data == 0 ? 0 : probe.Pointer(method.code_data);
  if (!RefreshVersionTable()) return std::nullopt;
  const auto known = version_states_.find(method_desc);
  return known == version_states_.end() ? 0 : known->second;
}

// The copy is the table as it is now only if the table is the same behind the copying as before. Else a method that is
// not in it may have a version all the same.
bool RuntimeMemory::RefreshVersionTable() {
  MemoryProbe probe(memory_, kListBudget, size_t{64} << 20);
  const uint64_t domain = probe.Pointer(probe.Pointer(place_.dac_table + 8 * layout_.version_table.app_domain_entry));
  const uint64_t at = domain + layout_.version_table.table;
  const uint64_t table = probe.Pointer(at);
  // SHash: table, size, count, occupied, maximum.
  const auto sizes = probe.Block<16>(at + 8);
  const uint32_t size = FieldOf<uint32_t>(sizes, 0), count = FieldOf<uint32_t>(sizes, 4);
  const uint32_t occupied = FieldOf<uint32_t>(sizes, 8), most = FieldOf<uint32_t>(sizes, 12);
  if (!probe.ok()) return false;
  if (table == version_table_ && count == version_count_) return true;
  if (count > occupied || occupied > most || most > size || size > kMaxVersionStates) return false;
  if (version_work_left_ <= 0) return false;
  version_work_left_ -= size;
  std::vector<uint64_t> states;
  constexpr uint32_t kStep = 8192;
  while (states.size() < size) {
    const size_t done = states.size();
    states.resize(std::min<size_t>(size, done + kStep));
    if (!probe.Read(table + 8 * done, std::as_writable_bytes(std::span(states).subspan(done)))) return false;
  }
  absl::flat_hash_map<uint64_t, uint64_t> known;  // state -> MethodDesc, of those that were read before
  for (const auto& [method, state] : version_states_) known.emplace(state, method);
  version_states_.clear();
  version_table_ = 0;
  for (const uint64_t state : states) {
    if (state <= 1) continue;  // empty, deleted
    const auto before = known.find(state);
    if (before == known.end()) version_work_left_ -= kWorkOfNewState;
    const uint64_t method = before != known.end() ? before->second : probe.Pointer(state);
    if (method != 0) version_states_.emplace(method, state);
  }
  if (probe.Pointer(at) != table || probe.Block<16>(at + 8) != sizes || !probe.ok()) return false;
  version_table_ = table;
  version_count_ = count;
  return true;
}

void RuntimeMemory::NextIteration() {
  main_loop_.Check();
  version_work_left_ = std::min(kMostVersionWork, version_work_left_ + kVersionWorkPerIteration);
}

}  // namespace clrsampler
