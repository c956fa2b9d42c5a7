#include "unwind_data/jit_unwind_data.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "clr/memory/methods_by_start.h"
#include "formats/unwind/x64_code.h"
#include "unwind_data/managed_functions.h"

namespace clrsampler {
namespace {

constexpr size_t kMaxMethods = 1 << 17;  // of one process
constexpr size_t kMaxStubs = 1 << 17;    // addresses of one process
// A method and its funclets. Those behind are not read: each takes two reads.
constexpr uint32_t kMaxFunctionsOfMethod = 256;
constexpr uint64_t kMaxMethodBytes = uint64_t{1} << 30;  // so that no sum of offsets overflows

// Times of samples of one process for which the sampler copied code. Samples are walked at most two seconds after they
// were taken. This is enough for eight busy CPUs at 1,000 Hz, all of it in such code.
constexpr size_t kMaxMoments = 1 << 14;
constexpr uint64_t kMaxMomentBytes = 2 << 20;
constexpr uint64_t kMaxSnapshotOffset = 16 << 10;

constexpr absl::string_view kDoubleMapped = ":doublemapper";  // the runtime's own heaps, with W^X

// Whether the mapping may hold code of the JIT: anonymous memory, or a runtime's heap. A mapping that is not known yet
// may be one.
bool MayBeJitMemory(const Mapping* mapping) { return mapping == nullptr || mapping->kind == MappingKind::kJitMemory; }

// The body of a method from the sampler's copy. nullptr: there is none, or it is longer than what the sampler copies.
std::shared_ptr<const ManagedFunction> BodyOfSnapshot(const wire_code_snapshot& snapshot, uint32_t unwinds) {
  const absl::StatusOr<UnwindInfo> info = UnwindInfo::Parse(std::as_bytes(std::span(snapshot.unwind)));
  if (!info.ok() || info->chained) return nullptr;
  std::array<std::byte, sizeof snapshot.identity> identity;
  std::memcpy(identity.data(), snapshot.identity, identity.size());
  const auto begin = FieldOf<uint32_t>(identity, unwinds), end = FieldOf<uint32_t>(identity, unwinds + 4);
  if (end <= begin || end - begin > kMaxMethodBytes || snapshot.address < snapshot.start) return nullptr;
  const uint64_t bytes = end - begin, offset = snapshot.address - snapshot.start;
  if (offset >= bytes) return nullptr;
  auto function = std::make_shared<ManagedFunction>();
  function->begin = function->method_begin = snapshot.start;
  function->end = snapshot.start + bytes;
  const std::optional<uint32_t> osr_frame_bytes = OsrFrameBytes(*info);
  function->osr = osr_frame_bytes.has_value();
  function->osr_frame_bytes = osr_frame_bytes.value_or(0);
  function->unwind = *info;
  // A leaf's epilogue is followed from its address on. The code before that is not looked at.
  if (offset <= kMaxSnapshotOffset) {
    const size_t copied = std::min<uint64_t>(sizeof snapshot.code, bytes - offset);
    auto content = std::make_shared<std::vector<std::byte>>(offset + copied);
    std::memcpy(content->data() + offset, snapshot.code, copied);
    function->code = *content;
    function->keep_alive = std::move(content);
  }
  return function;
}

bool IsReadable(const Process& process) {
  return process.exec_announced == MonotonicTime::Max() && process.exited == MonotonicTime::Max();
}

}  // namespace

struct JitUnwindData::Method {
  MethodCode code;
  bool transient = false;
  uint64_t end = 0;
  // The time when it was seen there. A permanent method was and will be there always.
  MonotonicTime from = MonotonicTime::Min();
  MonotonicTime until = MonotonicTime::Max();
  uint64_t code_bytes = 0;  // that are kept for it
  // The body comes first. Empty: a stub, or the sampler saw it but it was not read yet.
  std::vector<std::shared_ptr<const ManagedFunction>> functions;

  bool is_stub() const { return code.stub_kind != 0; }
  bool IsAt(const MethodCode& other) const {
    return code.header == other.header && code.stub_kind == other.stub_kind && code.identity == other.identity;
  }
  bool SameContent(const Method& other) const {
    return std::equal(functions.begin(), functions.end(), other.functions.begin(), other.functions.end(),
                      [](const auto& a, const auto& b) {
                        return a->begin == b->begin && a->end == b->end && a->unwind == b->unwind &&
                               std::equal(a->code.begin(), a->code.end(), b->code.begin(), b->code.end());
                      });
  }
  const std::shared_ptr<const ManagedFunction>* FunctionAt(uint64_t address) const {
    for (const auto& function : functions) {
      if (function->begin <= address && address < function->end) return &function;
    }
    return nullptr;
  }
};

struct JitUnwindData::ProcessState {
  uint32_t exec_count = 0;
  MethodsByStart<Method> known;
  // Addresses in permanent ones, and how many words are pushed there.
  absl::flat_hash_map<uint64_t, uint32_t> stubs;
  // Addresses in the runtime's heaps that none of its ranges claims: copies of write barriers and the like.
  absl::flat_hash_set<uint64_t> unclaimed;
  // The sampler's copies, by the time of the sample.
  absl::btree_map<MonotonicTime, std::vector<std::shared_ptr<const ManagedFunction>>> moments;
  uint64_t moment_bytes = 0;
  size_t methods = 0;
  uint64_t code_bytes = 0;

  static uint64_t BytesOf(const ManagedFunction& function) { return function.heap_bytes() + function.code.size(); }
  void AddMoment(MonotonicTime time, std::shared_ptr<const ManagedFunction> function) {
    moment_bytes += BytesOf(*function);
    moments[time].push_back(std::move(function));
    while (moments.size() > 1 && (moments.size() > kMaxMoments || moment_bytes > kMaxMomentBytes)) {
      for (const auto& oldest : moments.begin()->second) moment_bytes -= BytesOf(*oldest);
      moments.erase(moments.begin());
    }
  }

  void Clear() {
    known.clear();
    stubs.clear();
    unclaimed.clear();
    moments.clear();
    moment_bytes = 0;
    methods = 0;
    code_bytes = 0;
  }
  void Add(std::vector<Method>& there, Method method) {
    if (there.size() >= kMaxHistory) Drop(there, 1);
    code_bytes += method.code_bytes;
    there.push_back(std::move(method));
    ++methods;
  }
  // The oldest ones.
  void Drop(std::vector<Method>& there, size_t count) {
    const auto end = there.begin() + static_cast<ptrdiff_t>(count);
    for (auto method = there.begin(); method != end; ++method) code_bytes -= method->code_bytes;
    there.erase(there.begin(), end);
    methods -= count;
  }
};

JitUnwindData::JitUnwindData(RuntimeFinder runtime_of, const Clock& clock)
    : runtime_of_(std::move(runtime_of)), clock_(clock) {}

JitUnwindData::~JitUnwindData() = default;

JitUnwindData::ProcessState& JitUnwindData::TargetOf(const Process& process) {
  std::unique_ptr<ProcessState>& state = states_.Of(process);
  if (state == nullptr) state = std::make_unique<ProcessState>();
  if (std::exchange(state->exec_count, process.exec_count) != process.exec_count) state->Clear();
  if (state->methods >= kMaxMethods || state->stubs.size() + state->unclaimed.size() >= kMaxStubs ||
      state->code_bytes >= kMaxCopiedCodeBytes) {
    state->Clear();
    ++counters_.cleared;
  }
  return *state;
}

void JitUnwindData::Observe(const Process& process, const ObservedSample& sample) {
  main_loop_.Check();
  if (!IsReadable(process)) return;
  RuntimeMemory* runtime = runtime_of_(process.key);
  if (runtime == nullptr) return;
  ProcessState& state = TargetOf(process);
  for (const wire_code_snapshot& snapshot : sample.snapshots) AddSnapshot(state, *runtime, snapshot, sample.time);
  for (const uint64_t address : sample.addresses) {
    if (!MayBeJitMemory(process.mappings.Find(address)) || state.stubs.contains(address)) continue;
    bool permanent = false;
    ForEachAround(state.known, address, [&](const Method& method) { return permanent = !method.transient; });
    if (!permanent) ReadMethod(state, *runtime, address);
  }
}

// The sampler saw this at the moment of the sample. The method that is read stood there then, too.
void JitUnwindData::AddSnapshot(ProcessState& state, const RuntimeMemory& runtime, const wire_code_snapshot& snapshot,
                                MonotonicTime time) {
  if (auto body = BodyOfSnapshot(snapshot, runtime.layout().code_header.unwinds)) {
    ++counters_.from_snapshots;
    state.AddMoment(time, std::move(body));
  }
  Method seen;
  seen.transient = true;
  seen.code.header = snapshot.header;
  std::memcpy(seen.code.identity.data(), snapshot.identity, seen.code.identity.size());
  seen.code.range.begin = snapshot.start;
  seen.from = seen.until = time;
  // The body's; funclets behind it are covered where samples hit them.
  const uint32_t unwinds = runtime.layout().code_header.unwinds;
  const auto begin = FieldOf<uint32_t>(seen.code.identity, unwinds);
  const auto end = FieldOf<uint32_t>(seen.code.identity, unwinds + 4);
  const uint64_t body = end > begin && end - begin < kMaxMethodBytes ? end - begin : 0;
  seen.end = std::max<uint64_t>(snapshot.start + body, snapshot.address + 1);
  std::vector<Method>& there = state.known[snapshot.start];
  for (Method& method : there) {
    if (!method.IsAt(seen.code)) continue;
    if (!method.transient) return;
    if (!ReachesTo(state.known, snapshot.start, method, time)) continue;
    method.from = std::min(method.from, time);
    method.until = std::max(method.until, time);
    method.end = std::max(method.end, seen.end);
    return;
  }
  state.Add(there, std::move(seen));
}

// False: it can't be read, or is another one by now.
bool JitUnwindData::Read(RuntimeMemory& runtime, ProcessState& state, Method& method) {
  MemoryReader& memory = runtime.memory();
  const auto read = [&](uint64_t address, std::span<std::byte> into) { return memory.Read(address, into); };
  const auto& at = runtime.layout().code_header;
  const uint64_t start = method.code.range.begin, bytes = method.code.range.end - start;
  const auto functions = FieldOf<uint32_t>(method.code.identity, at.unwind_count);
  std::vector<std::array<uint32_t, 3>> table(std::min(functions, kMaxFunctionsOfMethod));
  if (table.empty() || bytes > kMaxMethodBytes ||
      !memory.Read(method.code.header + at.unwinds, std::as_writable_bytes(std::span(table)))) {
    return false;
  }
  std::shared_ptr<std::vector<std::byte>> content;
  if (const uint64_t kept = std::min(bytes, kMaxCodeBytes); kept <= kMaxCopiedCodeBytes - state.code_bytes) {
    content = std::make_shared<std::vector<std::byte>>(kept);
    if (!memory.Read(start, *content)) return false;
    method.code_bytes = kept;
  }
  const uint64_t base = start - table[0][0];
  std::optional<uint32_t> osr_frame_bytes;
  for (size_t i = 0; i < table.size(); ++i) {
    const auto [begin, end, unwind] = table[i];
    // All of them lie in the method, one behind the other.
    if (begin >= end || (i > 0 && begin < table[i - 1][1]) || end - table[0][0] > bytes) return false;
    std::optional<UnwindInfo> info = ReadUnwindInfo(read, base, unwind);
    if (!info) return false;
    auto function = std::make_shared<ManagedFunction>();
    if (i == 0) osr_frame_bytes = OsrFrameBytes(*info);
    function->begin = base + begin;
    function->end = base + end;
    function->method_begin = start;
    function->unwind = *std::move(info);
    function->funclet = i > 0;
    function->osr = osr_frame_bytes.has_value();
    function->osr_frame_bytes = osr_frame_bytes.value_or(0);
    const uint64_t offset = begin - table[0][0];
    if (content != nullptr && offset < content->size()) {
      function->code = std::span(*content).subspan(offset, std::min<uint64_t>(end - begin, content->size() - offset));
      function->keep_alive = content;
    }
    method.functions.push_back(std::move(function));
  }
  // The bytes that were read belong to the method that was found only if it is still there.
  return runtime.Stands(method.code);
}

// The code at the address now, as a method of which only this is known. nullopt: no code, or a stub that stays.
std::optional<JitUnwindData::Method> JitUnwindData::MethodAt(ProcessState& state, RuntimeMemory& runtime,
                                                             uint64_t address) {
  std::optional<RuntimeCode> found = runtime.FindCode(address);
  if (!found && runtime.last_failure() == ProbeFailure::kChanged) found = runtime.FindCode(address);
  if (!found) return std::nullopt;
  Method method;
  method.transient = found->transient;
  switch (found->kind) {
    case ManagedCode::Kind::kStub:
      if (!found->transient) {
        std::array<std::byte, kMaxResolveStubBytes> code;
        const bool read = runtime.memory().Read(address, code);
        state.stubs[address] = read ? WordsPushedByResolveStub(code).value_or(0) : 0;
        return std::nullopt;
      }
      method.code.stub_kind = std::max<uint32_t>(found->code.stub_kind, 1);
      method.code.range = {address, address + 1};
      break;
    case ManagedCode::Kind::kMethod:
      method.code = found->code;
      if (!Read(runtime, state, method)) {
        ++counters_.failed;
        return std::nullopt;
      }
      break;
    case ManagedCode::Kind::kNone:
      state.unclaimed.insert(address);
      return std::nullopt;
    default:
      return std::nullopt;
  }
  method.end = method.code.range.end;
  return method;
}

// Whether the short-lived code between the two times is the same. It then is known for longer.
bool JitUnwindData::Extend(ProcessState& state, std::vector<Method>& there, Method& found, MonotonicTime before,
                           MonotonicTime after) {
  for (Method& known : there) {
    if (!known.transient || !known.IsAt(found.code)) continue;
    if (!ReachesTo(state.known, found.code.range.begin, known, before)) continue;
    if (known.functions.empty() && !found.is_stub()) {  // only the sampler knew it so far
      known.code = found.code;
      known.functions = std::move(found.functions);
      known.code_bytes = found.code_bytes;
      state.code_bytes += known.code_bytes;
      known.end = std::max(known.end, found.end);
      ++counters_.methods;
      ++counters_.transient;
    } else if (!known.SameContent(found)) {
      continue;
    }
    known.from = std::min(known.from, after);
    known.until = std::max(known.until, before);
    return true;
  }
  return false;
}

void JitUnwindData::ReadMethod(ProcessState& state, RuntimeMemory& runtime, uint64_t address) {
  // The code that is found was there at some moment between these two, not throughout.
  const MonotonicTime before = clock_.Now();
  state.unclaimed.erase(address);
  std::optional<Method> method = MethodAt(state, runtime, address);
  if (!method) return;
  const MonotonicTime after = clock_.Now();
  std::vector<Method>& there = state.known[method->code.range.begin];
  if (!method->transient) {
    state.Drop(there, there.size());
  } else {
    if (Extend(state, there, *method, before, after)) return;
    method->from = after;
    method->until = before;  // a second look makes it an interval
  }
  if (!method->is_stub()) {
    ++counters_.methods;
    counters_.transient += method->transient ? 1 : 0;
    counters_.osr += method->functions.front()->osr ? 1 : 0;
  }
  state.Add(there, *std::move(method));
}

std::optional<CodeAt> JitUnwindData::Answer(ProcessState& state, uint64_t address, MonotonicTime time) const {
  std::optional<CodeAt> answer;
  if (const auto stub = state.stubs.find(address); stub != state.stubs.end()) {
    answer.emplace().kind = CodeKind::kStub;
    answer->permanent = true;
    answer->has_row = stub->second > 0;
    if (answer->has_row) {
      const auto bytes = static_cast<int32_t>((stub->second + 1) * sizeof(uint64_t));
      answer->row = {CfaRule::kSpOffset, RegisterRule::kSame, RegisterRule::kAtCfaOffset, false, bytes, 0, -8};
    }
    return answer;
  }
  if (const auto moment = state.moments.find(time); moment != state.moments.end()) {
    for (const auto& function : moment->second) {
      if (address < function->begin || function->end <= address) continue;
      answer.emplace().kind = CodeKind::kManaged;
      answer->managed = function;
      return answer;
    }
  }
  ForEachAround(state.known, address, [&](const Method& method) {
    if (method.from > time || time > method.until) return false;
    if (method.is_stub()) {
      answer.emplace().kind = CodeKind::kStub;
      return true;
    }
    // This one was there, so an older one was not, even where nothing is known of its function.
    const std::shared_ptr<const ManagedFunction>* function = method.FunctionAt(address);
    if (function == nullptr) return true;
    answer.emplace().kind = CodeKind::kManaged;
    answer->managed = *function;
    answer->permanent = !method.transient;
    return true;
  });
  return answer;
}

CodeAt JitUnwindData::At(const FrameQuery& query) {
  main_loop_.Check();
  if (!MayBeJitMemory(query.mapping)) return {};
  const uint64_t address = query.lookup_address;
  ProcessState& state = TargetOf(query.process);
  if (const std::optional<CodeAt> known = Answer(state, address, query.time)) return *known;
  RuntimeMemory* runtime = runtime_of_(query.process.key);
  if (runtime == nullptr) return {};
  if (IsReadable(query.process)) {
    ReadMethod(state, *runtime, address);
    if (const std::optional<CodeAt> known = Answer(state, address, query.time)) return *known;
  }
  bool other_times = false;
  ForEachAround(state.known, address, [&](const Method&) { return other_times = true; });
  if (other_times) {
    ++counters_.without_snapshot;
    return {};
  }
  CodeAt answer;
  if (state.unclaimed.contains(address) && query.mapping != nullptr &&
      absl::StrContains(query.mapping->path, kDoubleMapped)) {
    answer.kind = CodeKind::kStub;
  }
  return answer;
}

size_t JitUnwindData::heap_bytes() const {
  size_t bytes = 0;
  for (const auto& [key, state] : states_) {
    bytes += sizeof(ProcessState) + state->code_bytes + state->moment_bytes +
             (state->stubs.capacity() + state->unclaimed.capacity()) * 9;
    for (const auto& [start, methods] : state->known) {
      // Nodes of the tree are three quarters full.
      bytes += sizeof(decltype(state->known)::value_type) * 4 / 3 + methods.capacity() * sizeof(Method);
      for (const Method& method : methods) {
        bytes += method.functions.capacity() * sizeof method.functions[0];
        for (const auto& function : method.functions) bytes += function->heap_bytes();
      }
    }
  }
  return bytes;
}

}  // namespace clrsampler
