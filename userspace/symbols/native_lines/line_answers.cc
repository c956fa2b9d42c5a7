#include "symbols/native_lines/line_answers.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace clrsampler {

std::map<std::string, uint64_t> NativeLineCounters::ByName() const {
  return {{"opened", files}, {"failed", files_failed}, {"addresses", addresses},
          {"found", found},  {"late", late},           {"readers_lost", readers_lost}};
}

std::optional<uint64_t> LineAnswers::AddFile(UniqueFd file, std::string path) {
  main_loop_.Check();
  if (files_.size() >= kMaxFiles) {
    notices_.Add("native_lines_full", "",
                 absl::StrCat("not all native code has lines: debug information of ", kMaxFiles, " files is open"),
                 "record fewer processes at a time");
    return std::nullopt;
  }
  const uint64_t number = helper_->NextNumber();
  files_.emplace(number, File{std::move(file), std::move(path)});
  ++counters_.files;
  return number;
}

LineAnswers::Known* LineAnswers::Find(uint64_t file, uint64_t address, MonotonicTime time) {
  const auto known = known_.find({file, address});
  if (known != known_.end()) return &known->second;
  if (off_ || !files_.contains(file)) return nullptr;
  if (queued_ >= kMaxQueued) {
    overflowed_ = true;
    return nullptr;
  }
  if (known_.size() >= kMaxKnown || text_bytes_ >= kMaxTextBytes) ForgetAll();
  ++counters_.addresses;
  ++queued_;
  if (queue_.empty() || queue_.back().question.file != file ||
      queue_.back().question.addresses.size() >= kMaxQuestionAddresses) {
    queue_.push_back({{helper_->NextNumber(), file, {}}, time});
  }
  queue_.back().question.addresses.push_back(address);
  queue_.back().oldest = std::min(queue_.back().oldest, time);
  return &known_[{file, address}];
}

void LineAnswers::Ask(uint64_t file, uint64_t address, MonotonicTime time) { Find(file, address, time); }

std::optional<SourcePlace> LineAnswers::Get(uint64_t file, uint64_t address) {
  main_loop_.Check();
  Known* const known = Find(file, address, MonotonicTime::Max());
  if (known == nullptr) return std::nullopt;
  if (!known->answered) {
    counters_.late += std::exchange(known->missed, true) ? 0 : 1;
    return std::nullopt;
  }
  if (known->line == 0) return std::nullopt;
  return SourcePlace{texts_[known->text], known->line, 0, known->kind};
}

// The lines that are asked for now are learnt when the answer comes.
void LineAnswers::ForgetAll() {
  known_.clear();
  texts_.clear();
  text_numbers_.clear();
  text_bytes_ = 0;
  ++generation_;
}

uint32_t LineAnswers::TextNumber(const std::string& text) {
  const auto [entry, fresh] = text_numbers_.try_emplace(text, static_cast<uint32_t>(texts_.size()));
  if (fresh) {
    texts_.push_back(text);
    text_bytes_ += text.size();
  }
  return entry->second;
}

void LineAnswers::Learn(uint64_t file, uint64_t address, const NativeLine& line) {
  Known& known = known_[{file, address}];
  generation_ += std::exchange(known.missed, false) ? 1 : 0;
  known.answered = true;
  if (line.line == 0) return;
  ++counters_.found;
  known.text = TextNumber(line.file);
  known.line = line.line;
  known.kind = line.exact ? LineKind::kExact : LineKind::kOptimised;
}

std::optional<LineAnswers::Batch> LineAnswers::TakeOutstanding(uint64_t number) {
  const auto found = std::find_if(outstanding_.begin(), outstanding_.end(),
                                  [&](const Batch& batch) { return batch.question.number == number; });
  if (found == outstanding_.end()) return std::nullopt;
  Batch batch = std::move(*found);
  outstanding_.erase(found);
  return batch;
}

void LineAnswers::FailFile(uint64_t file, absl::string_view why) {
  const auto found = files_.find(file);
  if (found == files_.end()) return;
  ++counters_.files_failed;
  notices_.Add("native_lines_unreadable", found->second.path,
               absl::StrCat("no lines of native code from ", found->second.path, ": ", why),
               "its frames keep their names; gdb tells whether its debug information is whole");
  files_.erase(found);
}

void LineAnswers::Take(absl::string_view datagram) {
  progress_ = now_;
  if (const std::optional<NoAnswers> none = ParseNoAnswers(datagram)) return GiveUp(none->why, none->hint);
  if (const std::optional<uint64_t> lost = ParseReaderLost(datagram)) {
    ++counters_.readers_lost;
    const std::optional<Batch> batch = TakeOutstanding(*lost);
    if (!batch) return;
    for (const uint64_t address : batch->question.addresses) Learn(batch->question.file, address, {});
    return FailFile(batch->question.file, "the process that read its debug information has ended, or was ended");
  }
  const std::optional<uint64_t> number = AnsweredQuestion(datagram);
  const std::optional<Batch> batch = number ? TakeOutstanding(*number) : std::nullopt;
  if (!batch) return;  // of a run before, or nothing that a reader says
  const std::optional<LineAnswer> answer = ParseLineAnswer(datagram, batch->question.addresses.size());
  const bool read = answer && answer->failure.empty();
  for (size_t i = 0; i < batch->question.addresses.size(); ++i) {
    Learn(batch->question.file, batch->question.addresses[i], read ? answer->lines[i] : NativeLine());
  }
  if (!read) FailFile(batch->question.file, answer ? answer->failure : "the process that reads it gave no answer");
}

void LineAnswers::SendQuestions() {
  while (!queue_.empty() && outstanding_.size() < kMaxOutstanding) {
    Batch& batch = queue_.front();
    const auto file = files_.find(batch.question.file);
    if (file == files_.end()) {  // it has failed, or nobody uses it any more
      for (const uint64_t address : batch.question.addresses) Learn(batch.question.file, address, {});
    } else {
      if (!helper_->Send(LineQuestionBytes(batch.question), file->second.fd.get())) return;
      if (outstanding_.empty()) progress_ = now_;
    }
    queued_ -= batch.question.addresses.size();
    if (file != files_.end()) outstanding_.push_back(std::move(batch));
    queue_.pop_front();
  }
  if (queue_.empty() && std::exchange(overflowed_, false)) ++generation_;
}

void LineAnswers::Poll(MonotonicTime now) {
  main_loop_.Check();
  if (off_) return;
  now_ = now;
  while (std::optional<std::string> datagram = helper_->Receive()) {
    Take(*datagram);
    if (off_) return;
  }
  if (helper_->ended()) {
    return GiveUp("the processes that read it have ended too often, or were ended", "start the recording again");
  }
  if (!outstanding_.empty() && now.ns > progress_.ns && now.ns - progress_.ns > kMaxSilenceNs) {
    return GiveUp("the process that reads it does not answer", "start the recording again");
  }
  SendQuestions();
}

void LineAnswers::GiveUp(absl::string_view why, absl::string_view hint) {
  off_ = true;
  helper_->End();
  notices_.Add("native_lines_off", "", absl::StrCat("native code has no lines from here on: ", why), hint);
  for (const std::deque<Batch>* batches : {&outstanding_, &queue_}) {
    for (const Batch& batch : *batches) {
      for (const uint64_t address : batch.question.addresses) Learn(batch.question.file, address, {});
    }
  }
  outstanding_.clear();
  queue_.clear();
  queued_ = 0;
  files_.clear();
}

void LineAnswers::Await(uint64_t limit_ns, const Clock& clock) {
  main_loop_.Check();
  constexpr int kWaitMs = 10;
  const MonotonicTime began = clock.Now();
  for (MonotonicTime now = began; now.ns - began.ns < limit_ns; now = clock.Now()) {
    Poll(now);
    if (outstanding_.empty() && queue_.empty()) return;
    helper_->WaitMs(kWaitMs);
  }
}

MonotonicTime LineAnswers::AnsweredUntil() const {
  MonotonicTime oldest = MonotonicTime::Max();
  for (const std::deque<Batch>* batches : {&outstanding_, &queue_}) {
    for (const Batch& batch : *batches) oldest = std::min(oldest, batch.oldest);
  }
  if (oldest == MonotonicTime::Max() || oldest.ns == 0) return MonotonicTime::Max();
  if (now_.ns > oldest.ns && now_.ns - oldest.ns > kMaxHoldNs) return MonotonicTime::Max();
  return {oldest.ns - 1};
}

}  // namespace clrsampler
