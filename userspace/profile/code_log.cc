#include "profile/code_log.h"

#include "formats/profile/model_code.h"
#include "formats/unwind/unwind_bytes.h"

namespace clrsampler {

static_assert(kMaxBodyBytes <= kMaxCodeBodyBytes, "a profile holds each body that is read");
static_assert(kMaxUnwindPartBytes <= kMaxUnwindBytes, "and all of its unwind data");

void CodeLog::Note(const FrameQuery& query, FrameId plain, FrameId frame, const CodeBody& body) {
  main_loop_.Check();
  const ProcessKey process = query.process.key;
  if (body.bytes->size() > kMaxCodeBodyBytes || query.lookup_address < body.start ||
      query.lookup_address - body.start >= body.bytes->size() || by_address_.size() >= kMaxAddresses) {
    ++left_out_;
    return;
  }
  const auto [known, is_new] = by_start_.try_emplace({process, body.start, plain}, entries_.size());
  // Code that may be freed may be another version of the method by now.
  if (!is_new && *entries_[known->second].code.bytes != *body.bytes) known->second = entries_.size();
  if (known->second == entries_.size()) {
    const uint64_t bytes = body.bytes->size() + BytesOf(body.unwind);
    if (bytes > kMaxCodeBodiesBytes - bytes_) {
      by_start_.erase(known);
      ++left_out_;
      return;
    }
    bytes_ += bytes;
    entries_.push_back({process.tgid, plain, query.time, body, {}});
  }
  by_address_.insert_or_assign({process, query.lookup_address, frame}, known->second);
}

void CodeLog::Count(ProcessKey process, uint64_t lookup_address, FrameId frame) {
  main_loop_.Check();
  const auto found = by_address_.find({process, lookup_address, frame});
  if (found == by_address_.end()) return;
  Entry& entry = entries_[found->second];
  ++entry.self[static_cast<uint32_t>(lookup_address - entry.code.start)];
  ++counted_;
}

std::map<std::string, uint64_t> CodeLog::CountersByName() const {
  return {{"bodies", entries_.size()},
          {"bytes", bytes_},
          {"left_out", left_out_},
          {"samples", counted_},
          {"without", without_}};
}

}  // namespace clrsampler
