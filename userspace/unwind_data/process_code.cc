#include "unwind_data/process_code.h"

#include <utility>

namespace clrsampler {

CodeFinder& ProcessCode::For(const Process& process, MonotonicTime time) {
  main_loop_.Check();
  std::unique_ptr<ProcessState>& state = states_.Of(process);
  if (state == nullptr) state = std::make_unique<ProcessState>();
  // Code that was dropped there for want of room must not live on in here.
  if (state->exec_count != process.exec_count || state->jit_cleared != jit_.counters().cleared) {
    state->exec_count = process.exec_count;
    state->jit_cleared = jit_.counters().cleared;
    state->known.clear();
  }
  finder_.process_ = &process;
  finder_.target_ = state.get();
  finder_.time_ = time;
  finder_.answers_last_ = true;
  return finder_;
}

const CodeAt* ProcessCode::Finder::Lasting(uint64_t address) {
  const auto known = target_->known.find(address);
  if (known == target_->known.end()) return nullptr;
  const uint64_t generation = process_->mappings.generation();
  if (known->second.mappings == generation) return &known->second.code;
  const Mapping* mapping = process_->mappings.Find(address);
  if (mapping == nullptr || !known->second.HoldsIn(*mapping)) return nullptr;
  known->second.mappings = generation;
  return &known->second.code;
}

const CodeAt& ProcessCode::Finder::At(uint64_t address) {
  if (const CodeAt* known = Lasting(address)) return *known;
  const Mapping* mapping = process_->mappings.Find(address);
  answer_ = owner_.Find(FrameQuery{*process_, mapping, address, address, time_});
  const bool of_image =
      mapping != nullptr && (mapping->kind == MappingKind::kFile || mapping->kind == MappingKind::kVdso);
  const bool lasting = mapping != nullptr && !answer_.unavailable && (of_image || answer_.permanent);
  if (!lasting) {
    answers_last_ = false;
    return answer_;
  }
  if (target_->known.size() >= kMaxKnown) target_->known.clear();
  Known& fresh = target_->known[address];
  fresh = {std::move(answer_), process_->mappings.generation(), mapping->start, MappingIdentity::Of(*mapping),
           mapping->kind};
  return fresh.code;
}

CodeAt ProcessCode::Find(const FrameQuery& query) {
  CodeAt code;
  code.mapped = query.mapping != nullptr;
  const auto take = [&](CodeAt found) {
    if (found.kind == CodeKind::kUnknown) return false;
    code = std::move(found);
    code.mapped = true;
    return true;
  };
  const MappingKind kind = query.mapping != nullptr ? query.mapping->kind : MappingKind::kJitMemory;
  switch (kind) {
    case MappingKind::kFile:
      if (take(r2r_.At(query))) break;
      take(elf_.Find(query.process, *query.mapping, query.address));
      break;
    case MappingKind::kVdso:
      take(elf_.Find(query.process, *query.mapping, query.address));
      break;
    case MappingKind::kJitMemory:
      // Images of compressed single-file programs lie in anonymous memory, too.
      if (take(jit_.At(query)) || query.mapping == nullptr) break;
      if (take(r2r_.At(query)) || (arm64_ != nullptr && take(arm64_->At(query)))) break;
      code.omits_frames = omits_frames_ && omits_frames_(query.process.key);
      break;
    case MappingKind::kOther:
      break;
  }
  return code;
}

void ProcessCode::Observe(const Process& process, const ObservedSample& sample) {
  main_loop_.Check();
  For(process, sample.time);
  fresh_.clear();
  for (const uint64_t address : sample.addresses) {
    if (finder_.Lasting(address) == nullptr) fresh_.push_back(address);
  }
  if (fresh_.empty() && sample.snapshots.empty()) return;
  const ObservedSample fresh{fresh_, sample.snapshots, sample.time};
  r2r_.Observe(process, fresh);
  jit_.Observe(process, fresh);
  if (arm64_ != nullptr) arm64_->Observe(process, fresh);
}

size_t ProcessCode::heap_bytes() const {
  size_t bytes = jit_.heap_bytes() + r2r_.heap_bytes() + elf_.heap_bytes();
  for (const auto& [key, state] : states_) {
    bytes += sizeof(ProcessState) + state->known.capacity() * (sizeof(Known) + sizeof(uint64_t) + 1);
  }
  return bytes;
}

}  // namespace clrsampler
