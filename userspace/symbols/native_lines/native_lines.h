// Lines of native code, from the debug information of its files (docs/lines.md).
#ifndef CLRSAMPLER_SYMBOLS_NATIVE_LINES_NATIVE_LINES_H_
#define CLRSAMPLER_SYMBOLS_NATIVE_LINES_NATIVE_LINES_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <variant>

#include "absl/container/flat_hash_map.h"
#include "process/image_files.h"
#include "process/per_process.h"
#include "status/notices.h"
#include "status/thread_checker.h"
#include "symbols/elf_symbols_source.h"
#include "symbols/frame_source.h"
#include "symbols/line_source.h"
#include "symbols/native_lines/line_answers.h"
#include "symbols/native_lines/line_process.h"

namespace clrsampler {

// Main loop only. Borrows `elf` and `notices`. It names nothing: it sees each sample as it comes, asks for the lines of
// its code, and lets the sample wait for a moment until the answers are there.
class NativeLines : public FrameSource, public SampleObserver, public PolledSource, public LineSource {
 public:
  NativeLines(ElfSymbolsSource& elf, std::shared_ptr<LineHelper> helper, Notices& notices)
      : elf_(elf), answers_(std::move(helper), notices), asked_([this](ProcessKey, std::monostate) { DropUnused(); }) {}

  std::optional<Resolution> Resolve(const FrameQuery&) override { return std::nullopt; }
  uint64_t Generation(ProcessKey) const override { return answers_.generation(); }
  SampleObserver* observer() override { return this; }
  PolledSource* polled() override { return this; }

  void Observe(const Process& process, const ObservedSample& sample) override;
  void Poll(const Process&, MonotonicTime now) override { answers_.Poll(now); }
  MonotonicTime CompleteUntil(ProcessKey) const override { return answers_.AnsweredUntil(); }
  bool WantsShortIterations(MonotonicTime) const override { return answers_.AnsweredUntil() != MonotonicTime::Max(); }

  bool HasLinesOf(FrameKind kind) const override { return kind == FrameKind::kNative || kind == FrameKind::kAot; }
  std::optional<SourcePlace> PlaceOf(const FrameQuery& query) override;

  // For what asks once and can wait: until all that was observed has been answered, for so long at most.
  void Await(uint64_t limit_ns, const Clock& clock) { answers_.Await(limit_ns, clock); }

  const NativeLineCounters& counters() const { return answers_.counters(); }

 private:
  struct File {
    std::weak_ptr<const ImageFile> image;
    std::optional<uint64_t> number;  // nullopt: it can't be asked
  };

  // nullopt: nobody can be asked about this code.
  std::optional<uint64_t> FileNumber(const Process& process, const Mapping& mapping,
                                     const ElfSymbolsSource::LinePlace& place);
  void DropUnused();

  ElfSymbolsSource& elf_;
  LineAnswers answers_;
  absl::flat_hash_map<const ImageFile*, File> files_;
  PerProcess<std::monostate> asked_;  // about whose code
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_SYMBOLS_NATIVE_LINES_NATIVE_LINES_H_
