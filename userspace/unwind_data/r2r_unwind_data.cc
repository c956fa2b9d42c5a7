#include "unwind_data/r2r_unwind_data.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "formats/unwind/arm64_code.h"
#include "unwind_data/managed_functions.h"

namespace clrsampler {
namespace {

// The most functions of one process. The shipped framework has 150,000 in all its images.
constexpr size_t kMaxFunctions = 1 << 18;

bool IsSame(const std::weak_ptr<const void>& a, const std::shared_ptr<const void>& b) {
  return !a.owner_before(b) && !b.owner_before(a);
}

// The place of the code in the process. The rest is the caller's.
std::shared_ptr<ManagedFunction> Begin(const R2rMethods::Code& code) {
  auto function = std::make_shared<ManagedFunction>();
  function->begin = code.address + code.function->begin;
  function->end = code.address + code.function->end;
  function->funclet = code.function->part == R2rPart::kFunclet;
  function->resumption_stub = code.function->part == R2rPart::kResumptionStub;
  const std::optional<R2rFunction> method = code.image->Function(code.function->method);
  function->method_begin = method ? code.address + method->begin : function->begin;
  return function;
}

}  // namespace

R2rUnwindData::R2rUnwindData(R2rMethods* methods, ReadMemory read_memory)
    : methods_(methods), read_memory_(std::move(read_memory)) {}

CodeAt R2rUnwindData::At(const FrameQuery& query) {
  main_loop_.Check();
  CodeAt answer;
  const std::optional<R2rMethods::Code> code = methods_->CodeAt(query);
  const PeMachine machine = code ? code->image->pe().machine() : PeMachine::kOther;
  if (machine == PeMachine::kOther) return answer;
  if (!code->function) {
    answer.kind = CodeKind::kStub;
    return answer;
  }
  if (machine == PeMachine::kArm64) return OnArm64(query, *code);
  ProcessState& process = states_.Of(query.process);
  if (process.functions.size() >= kMaxFunctions) process = ProcessState();
  Known& known = process.functions[code->address + code->function->begin];
  if (known.index != code->function->index || !IsSame(known.content, code->content)) {
    known = Known();
    bool unreadable = false;
    known.function = code->in_memory ? FromMemory(query.process, *code, process, unreadable) : FromFile(*code);
    if (unreadable) {  // perhaps only now: a process that has just begun to exec
      ++counters_.unreadable;
      process.functions.erase(code->address + code->function->begin);
      return answer;
    }
    known.content = code->content;
    known.index = code->function->index;
    ++(known.function != nullptr ? counters_.functions : counters_.damaged);
  }
  if (known.function == nullptr) return answer;
  answer.kind = CodeKind::kManaged;
  answer.managed = known.function;
  return answer;
}

// Its unwind data says nothing that the frame record and the code do not.
CodeAt R2rUnwindData::OnArm64(const FrameQuery& query, const R2rMethods::Code& code) {
  const uint64_t address = query.lookup_address - code.address;
  const uint64_t begin =
      std::max<uint64_t>(code.function->begin, address - std::min<uint64_t>(address, kArm64BytesBefore));
  const uint64_t end = std::min<uint64_t>(code.function->end, address + kArm64BytesFrom);
  if (begin > address || address >= end) return ManagedArm64({}, address, address);
  const auto bytes = static_cast<uint32_t>(end - begin);
  if (!code.in_memory) {
    const auto content = code.image->pe().Bytes({static_cast<uint32_t>(begin), bytes});
    if (content && !code.file->content.damaged()) return ManagedArm64(*content, begin, address);
  } else if (address % 4 == 0 && read_memory_ && query.process.exited == MonotonicTime::Max() &&
             query.process.exec_announced == MonotonicTime::Max()) {
    std::vector<std::byte> content(bytes);
    if (read_memory_(query.process.key.tgid, code.address + begin, content))
      return ManagedArm64(content, begin, address);
  }
  return ManagedArm64({}, address, address);
}

std::shared_ptr<const ManagedFunction> R2rUnwindData::FromFile(const R2rMethods::Code& code) {
  const PeImage& pe = code.image->pe();
  absl::StatusOr<UnwindInfo> unwind = UnwindInfo::ParseWithChain(
      [&](uint32_t rva) { return pe.BytesFrom(rva, UnwindInfo::kMaxBytes); }, code.function->unwind);
  if (!unwind.ok()) return nullptr;
  const uint64_t bytes = std::min<uint64_t>(code.function->end - code.function->begin, kMaxCodeBytes);
  const auto content = pe.Bytes({code.function->begin, static_cast<uint32_t>(bytes)});
  if (code.file->content.damaged()) return nullptr;
  std::shared_ptr<ManagedFunction> function = Begin(code);
  function->unwind = *std::move(unwind);
  // A jump out of a function of split methods is no proof of a tail call, so epilogues could be mistaken.
  if (content && !code.image->has_cold_parts()) {
    function->code = *content;
    function->keep_alive = code.content;
  }
  return function;
}

std::shared_ptr<const ManagedFunction> R2rUnwindData::FromMemory(const Process& process, const R2rMethods::Code& code,
                                                                 ProcessState& known, bool& unreadable) {
  // The code there may be another program's by now.
  if (!read_memory_ || process.exited != MonotonicTime::Max() || process.exec_announced != MonotonicTime::Max()) {
    unreadable = true;
    return nullptr;
  }
  const auto read = [&](uint64_t address, std::span<std::byte> into) {
    const bool done = read_memory_(process.key.tgid, address, into);
    unreadable |= !done;
    return done;
  };
  const std::optional<UnwindInfo> unwind = ReadUnwindInfo(read, code.address, code.function->unwind);
  if (!unwind) return nullptr;
  std::shared_ptr<ManagedFunction> function = Begin(code);
  function->unwind = *unwind;
  const uint64_t bytes = std::min<uint64_t>(function->end - function->begin, kMaxCodeBytes);
  if (code.image->has_cold_parts() || bytes > kMaxCopiedCodeBytes - std::min(kMaxCopiedCodeBytes, known.copied_bytes)) {
    return function;
  }
  auto content = std::make_shared<std::vector<std::byte>>(bytes);
  if (read_memory_(process.key.tgid, function->begin, *content)) {
    known.copied_bytes += bytes;
    function->code = *content;
    function->keep_alive = std::move(content);
  }
  return function;
}

void R2rUnwindData::Observe(const Process& process, const ObservedSample& sample) {
  main_loop_.Check();
  if (process.exec_announced != MonotonicTime::Max() || process.exited != MonotonicTime::Max()) return;
  for (const uint64_t address : sample.addresses) {
    const Mapping* mapping = process.mappings.Find(address);
    // Files can be read later.
    if (mapping == nullptr || mapping->kind != MappingKind::kJitMemory) continue;
    At({process, mapping, address, address, sample.time});
  }
}

size_t R2rUnwindData::heap_bytes() const {
  size_t bytes = 0;
  for (const auto& [key, process] : states_) {
    bytes += process.functions.capacity() * (sizeof(std::pair<const uint64_t, Known>) + 1) + process.copied_bytes;
    for (const auto& [begin, known] : process.functions) {
      if (known.function != nullptr) bytes += known.function->heap_bytes();
    }
  }
  return bytes;
}

}  // namespace clrsampler
