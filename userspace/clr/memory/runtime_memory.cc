#include "clr/memory/runtime_memory.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clr/memory/stub_code.h"
#include "formats/names/tier.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// Stubs whose kind is told by their instructions (stub_code.h).
constexpr absl::string_view kLinkedStub = "Stub";

}  // namespace

RuntimeMemory::RuntimeMemory(const RuntimePlace& place, MemoryReader& memory) : place_(place), memory_(memory) {}
RuntimeMemory::~RuntimeMemory() = default;

absl::StatusOr<std::unique_ptr<RuntimeMemory>> RuntimeMemory::Attach(const RuntimePlace& place, MemoryReader& memory,
                                                                     const MappedContentFinder& files,
                                                                     MetadataCopies& copies, bool proven) {
  std::unique_ptr<RuntimeMemory> runtime(new RuntimeMemory(place, memory));
  RETURN_IF_ERROR(runtime->Start(files, copies, proven));
  return runtime;
}

absl::Status RuntimeMemory::Start(const MappedContentFinder& files, MetadataCopies& copies, bool proven) {
  ASSIGN_OR_RETURN(layout_, RuntimeLayout::ForMajor(place_.major, place_.machine, place_.try_newer));
  MemoryProbe probe(memory_);
  // Entry 0 of the table for debuggers; it has stood there since .NET 8.
  range_map_ = probe.Pointer(place_.dac_table);
  if (!probe.ok()) return absl::UnavailableError("its table for debuggers is not readable");
  if (layout_.described != DescribedLayout::kNot) RETURN_IF_ERROR(ReadDescriptor());
  if (place_.alter_layout) place_.alter_layout(layout_);
  if (!place_.image.contains(range_map_)) {
    return absl::UnavailableError("the runtime has not set up its map of code yet");
  }
  ranges_ = std::make_unique<CodeRanges>(layout_, range_map_, place_.image);
  modules_ = std::make_unique<RuntimeModules>(layout_, place_.image, memory_, files, copies);
  types_ = std::make_unique<RuntimeTypes>(layout_, *modules_);
  precompiled_ = std::make_unique<PrecompiledMethods>(layout_, memory_);
  return SelfTest(files, proven);
}

RuntimeVariables RuntimeMemory::variables() const {
  if (layout_.described != DescribedLayout::kNot) return variables_;
  const auto variable = [&](uint32_t entry) {
    return memory_.Value<uint64_t>(place_.dac_table + 8 * uint64_t{entry}).value_or(0);
  };
  return {variable(layout_.variables.thread_store), variable(layout_.variables.object_type),
          variable(layout_.variables.sync_table)};
}

absl::Status RuntimeMemory::ReadDescriptor() {
  if (place_.descriptor == 0) {
    if (layout_.described >= DescribedLayout::kInPart)
      return absl::FailedPreconditionError("it exports no contract descriptor");
    return absl::OkStatus();
  }
  std::array<std::byte, ContractDescriptorHeader::kBytes> bytes;
  if (!memory_.Read(place_.descriptor, bytes)) return absl::UnavailableError("its contract descriptor is not readable");
  ASSIGN_OR_RETURN(const ContractDescriptorHeader header, ContractDescriptorHeader::Parse(bytes));
  std::string json(header.json_bytes, '\0');
  std::vector<uint64_t> pointers(header.pointers);
  if (!memory_.Read(header.json_address, std::as_writable_bytes(std::span(json))) ||
      !memory_.Read(header.pointers_address, std::as_writable_bytes(std::span(pointers)))) {
    return absl::UnavailableError("its contract descriptor is not readable");
  }
  ASSIGN_OR_RETURN(const ContractDescriptor descriptor, ContractDescriptor::Parse(json, pointers));
  RETURN_IF_ERROR(layout_.Overlay(descriptor, differences_));
  described_ = descriptor.Offset("InstantiatedMethodDesc", "PerInstInfo").has_value() &&
               descriptor.Offset("InstantiatedMethodDesc", "NumGenericArgs").has_value();
  variables_ = {descriptor.Global("ThreadStore").value_or(0), descriptor.Global("ObjectMethodTable").value_or(0),
                descriptor.Global("SyncTableEntries").value_or(0)};
  if (const auto map = descriptor.Global("ExecutionManagerCodeRangeMapAddress")) {
    range_map_ = *map;
  } else if (layout_.described >= DescribedLayout::kInPart) {
    return absl::FailedPreconditionError("its contract descriptor does not tell where the map of code is");
  }
  return absl::OkStatus();
}

std::optional<ManagedCode> RuntimeMemory::Find(uint64_t address) {
  main_loop_.Check();
  ++counters_.lookups;
  MemoryProbe probe(memory_);
  ManagedCode found;
  const std::optional<CodeSection> section = ranges_->FindSection(probe, address);
  if (section && probe.ok()) {
    found.range = section->range;
    found.transient = section->collectible;
    switch (section->kind) {
      case CodeSectionKind::kStubs:
        NameStub(section->stub_kind, address, found);
        break;
      case CodeSectionKind::kPrecompiled:
        NamePrecompiled(probe, *section, address, found);
        break;
      case CodeSectionKind::kCodeHeap:
        NameCompiled(probe, *section, address, found);
        break;
    }
  }
  last_failure_ = probe.failure();
  last_detail_ = probe.detail();
  ++counters_.failures[static_cast<size_t>(probe.failure())];
  if (!probe.ok()) return std::nullopt;
  if (found.kind == ManagedCode::Kind::kMethod || found.kind == ManagedCode::Kind::kPrecompiled) ++counters_.methods;
  if (found.kind == ManagedCode::Kind::kStub) ++counters_.stubs;
  return found;
}

void RuntimeMemory::NameStub(uint32_t kind, uint64_t address, ManagedCode& found) {
  found.kind = ManagedCode::Kind::kStub;
  found.name.kind = MethodKind::kStub;
  found.name.method = std::string(StubName(kind, address));
}

void RuntimeMemory::NameCompiled(MemoryProbe& probe, const CodeSection& heap, uint64_t address, ManagedCode& found) {
  const std::optional<MethodCode> code = CodeAt(probe, heap, address);
  if (!code) {
    found.kind = ManagedCode::Kind::kNoMethod;
    return;
  }
  found.code = *code;
  found.range = code->range;
  if (code->stub_kind != 0) {
    found.range = {address, address + 1};
    return NameStub(code->stub_kind, address, found);
  }
  if (heap.collectible) types_->ForgetTransient();
  RuntimeMethod method = types_->Method(probe, code->method_desc, heap.collectible);
  if (probe.ok() && heap.collectible && method.dynamic) {
    // A look at it while it was sampled (memory_methods.cc) does not tell its module, and both must name it alike.
    method.name.tier = std::string(tier::kOptimized);
  } else if (probe.ok()) {
    method.name.tier = TierOf(probe, method, code->method_desc, code->range.begin, &*code);
  }
  found.kind = ManagedCode::Kind::kMethod;
  found.name = std::move(method.name);
  found.token = method.token;
  found.module = std::move(method.module);
  // Dynamic methods are freed while their heap lives. So the heap's owner tells nothing of them.
  if (heap.collectible && found.name.kind == MethodKind::kMethod) found.owner = ranges_->OwnerOf(probe, heap);
  // The words that were read in between belong to the method that was there before only if it is still there.
  if (probe.ok() && !Stands(*code)) probe.Fail(ProbeFailure::kChanged, "the method was replaced");
  if (probe.ok() && !found.transient) {
    if (recent_.size() >= kMaxRecent) recent_.clear();
    recent_[address] = {found.kind, false, *code};
  }
}

// Nothing tells where stubs end. So a method that was freed behind some would count as one of them.
std::optional<MethodCode> RuntimeMemory::CodeAt(MemoryProbe& probe, const CodeSection& heap, uint64_t address) {
  std::optional<MethodCode> code = ranges_->FindMethod(probe, heap, address);
  if (!code || code->stub_kind == 0 || !heap.collectible) return code;
  std::array<std::byte, 2 * kMaxJumpStubBytes> buffer;
  const auto [begin, bytes] = ReadAround(address, buffer);
  return JumpStubAround(layout_.machine, address, bytes, begin) ? code : std::nullopt;
}

// As much before the address as behind it, or what of it is in the address's page. Empty: it can't be read.
RuntimeMemory::Surroundings RuntimeMemory::ReadAround(uint64_t address, std::span<std::byte> buffer) {
  constexpr uint64_t kPage = 4096;
  uint64_t begin = address - std::min<uint64_t>(address, buffer.size() / 2);
  std::span<std::byte> bytes = buffer;
  if (memory_.Read(begin, bytes)) return {begin, bytes};
  // The heap may end before or behind the address.
  const uint64_t page = address / kPage * kPage;
  const uint64_t end = std::min(page + kPage, begin + bytes.size());
  begin = std::max(page, begin);
  bytes = bytes.first(end - begin);
  if (memory_.Read(begin, bytes)) return {begin, bytes};
  return {address, {}};
}

absl::string_view RuntimeMemory::StubName(uint32_t kind, uint64_t address) {
  const absl::string_view name = StubKindName(layout_.major, kind);
  if (name != kLinkedStub) return name;
  // One heap holds several kinds.
  std::array<std::byte, 2 * (kMaxStubBytes + kStubHeaderBytes)> buffer;
  const auto [begin, bytes] = ReadAround(address, buffer);
  const std::optional<StubCode> stub = LinkedStubAround(layout_.machine, address, bytes, begin);
  return stub.has_value() ? stub->kind : name;
}

std::optional<ManagedCode> RuntimeMemory::Unpublished(uint64_t method_desc) {
  main_loop_.Check();
  ++counters_.lookups;
  MemoryProbe probe(memory_);
  RuntimeMethod method = types_->Method(probe, method_desc, false);
  last_failure_ = probe.failure();
  last_detail_ = probe.detail();
  ++counters_.failures[static_cast<size_t>(probe.failure())];
  if (!probe.ok()) return std::nullopt;
  ++counters_.methods;
  ManagedCode found;
  found.kind = ManagedCode::Kind::kMethod;
  found.name = std::move(method.name);
  found.token = method.token;
  return found;
}

std::optional<std::string> RuntimeMemory::TypeName(uint64_t method_table) {
  main_loop_.Check();
  MemoryProbe probe(memory_);
  std::string text = types_->Type(probe, method_table);
  last_failure_ = probe.failure();
  last_detail_ = probe.detail();
  if (!probe.ok() || !IsMethodName(text)) return std::nullopt;
  return text;
}

std::optional<RuntimeCode> RuntimeMemory::FindCode(uint64_t address) {
  main_loop_.Check();
  if (const auto recent = recent_.find(address); recent != recent_.end()) {
    last_failure_ = ProbeFailure::kNone;
    return recent->second;
  }
  MemoryProbe probe(memory_);
  RuntimeCode found;
  const std::optional<CodeSection> section = ranges_->FindSection(probe, address);
  if (section && probe.ok()) {
    found.transient = section->collectible;
    switch (section->kind) {
      case CodeSectionKind::kStubs:
        found.kind = ManagedCode::Kind::kStub;
        break;
      case CodeSectionKind::kPrecompiled:
        found.kind = ManagedCode::Kind::kPrecompiled;
        break;
      case CodeSectionKind::kCodeHeap:
        found.kind = ManagedCode::Kind::kNoMethod;
        if (const std::optional<MethodCode> code = CodeAt(probe, *section, address)) {
          found.kind = code->stub_kind != 0 ? ManagedCode::Kind::kStub : ManagedCode::Kind::kMethod;
          found.code = *code;
        }
        break;
    }
  }
  last_failure_ = probe.failure();
  last_detail_ = probe.detail();
  if (!probe.ok()) return std::nullopt;
  return found;
}

bool RuntimeMemory::Stands(const MethodCode& code) {
  main_loop_.Check();
  MemoryProbe probe(memory_);
  if (probe.Pointer(code.range.begin - 8) != code.header || !probe.ok()) return false;
  if (code.stub_kind != 0) return true;
  const auto identity = probe.Block<48>(code.header);
  return probe.ok() && identity == code.identity;
}

std::vector<RuntimeMemory::TransientHeap> RuntimeMemory::TransientHeaps() {
  main_loop_.Check();
  MemoryProbe probe(memory_, kListBudget, size_t{64} << 20);
  std::vector<TransientHeap> heaps;
  for (const CodeSection& section : ranges_->Sections(probe)) {
    if (!section.collectible || section.kind != CodeSectionKind::kCodeHeap) continue;
    MemoryProbe own(memory_);
    if (const std::optional<CodeHeap> heap = ranges_->HeapOf(own, section)) heaps.push_back({section.range, *heap});
  }
  return heaps;
}

std::optional<RuntimeMemory::TransientHeap> RuntimeMemory::TransientHeapAt(uint64_t address) {
  main_loop_.Check();
  MemoryProbe probe(memory_);
  const std::optional<CodeSection> section = ranges_->FindSection(probe, address);
  if (!section || !section->collectible || section->kind != CodeSectionKind::kCodeHeap) return std::nullopt;
  const std::optional<CodeHeap> heap = ranges_->HeapOf(probe, *section);
  if (!heap) return std::nullopt;
  return TransientHeap{section->range, *heap};
}

std::optional<HeapOwner> RuntimeMemory::OwnerOfAssembly(uint64_t entry, uint64_t method_desc) {
  main_loop_.Check();
  MemoryProbe probe(memory_);
  const std::optional<CodeSection> section = ranges_->FindSection(probe, entry);
  if (!section || !section->collectible || section->kind != CodeSectionKind::kCodeHeap) return std::nullopt;
  types_->ForgetTransient();
  const RuntimeMethod method = types_->Method(probe, method_desc, true);
  if (!probe.ok() || method.name.kind != MethodKind::kMethod) return std::nullopt;
  return ranges_->OwnerOf(probe, *section);
}

std::optional<HeapOwner> RuntimeMemory::OwnerOfHeap(uint64_t address) {
  main_loop_.Check();
  constexpr size_t kMostTried = 8;  // stubs may come first
  MemoryProbe probe(memory_);
  const std::optional<CodeSection> section = ranges_->FindSection(probe, address);
  if (!section || !section->collectible || section->kind != CodeSectionKind::kCodeHeap) return std::nullopt;
  // Most such heaps are of dynamic methods, whose owner is there for good: three reads tell.
  if (ranges_->OwnerOf(probe, *section).number == 0) return std::nullopt;
  for (const uint64_t start : ranges_->Starts(probe, *section, kMostTried)) {
    const std::optional<ManagedCode> found = Find(start);
    if (!found || found->kind != ManagedCode::Kind::kMethod) continue;
    return found->owner.number == 0 ? std::nullopt : std::optional(found->owner);
  }
  return std::nullopt;
}

std::vector<CodeSection> RuntimeMemory::Sections() {
  main_loop_.Check();
  MemoryProbe probe(memory_, kListBudget, size_t{1} << 30);
  return ranges_->Sections(probe);
}

std::vector<uint64_t> RuntimeMemory::Starts(const CodeSection& heap) {
  main_loop_.Check();
  constexpr size_t kMostListed = 1 << 20;
  MemoryProbe probe(memory_, kListBudget, size_t{1} << 30);
  return ranges_->Starts(probe, heap, kMostListed);
}

bool RuntimeMemory::NamePrecompiled(MemoryProbe& probe, const CodeSection& section, uint64_t address,
                                    ManagedCode& found) {
  found.kind = ManagedCode::Kind::kNoMethod;
  const std::optional<PrecompiledMethods::Function> function = precompiled_->Find(probe, section, address);
  if (!function) return false;
  RuntimeMethod method = types_->Method(probe, function->method_desc, section.collectible);
  if (!probe.ok()) return false;
  found.kind = ManagedCode::Kind::kPrecompiled;
  found.range = function->range;
  found.name = std::move(method.name);
  found.token = method.token;
  found.name.tier = TierOf(probe, method, function->method_desc, function->range.begin, nullptr);
  return probe.ok();
}

}  // namespace clrsampler
