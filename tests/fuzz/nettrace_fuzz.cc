// Properties: records are the same whether a stream comes at once or in pieces. Payloads have at most the length of the
// stream. In order of time the same events come. None is older than the one before it, but those that are counted.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"
#include "formats/nettrace/nettrace_reader.h"
#include "formats/nettrace/time_order.h"

namespace clrsampler {
namespace {

void Require(bool holds) {
  if (!holds) __builtin_trap();
}

class Digest : public NettraceSink {
 public:
  void OnStart(const NettraceStart& start) override { absl::StrAppend(&text_, "start ", start.pid, "\n"); }
  void OnEvent(const NettraceEvent& event) override {
    Require(event.metadata != nullptr && event.metadata->id != 0);
    payload_bytes_ += event.payload.size();
    absl::StrAppend(&text_, event.ticks, " ", event.sequence, " ", event.stack.size(), " ", AsText(event.payload),
                    "\n");
    if (event.ticks < newest_) ++unsorted_;
    newest_ = std::max(newest_, event.ticks);
    ++events_;
  }
  void OnLost(uint64_t thread, uint64_t count) override { absl::StrAppend(&text_, "lost ", thread, " ", count, "\n"); }
  void OnSequencePoint(uint64_t ticks) override { absl::StrAppend(&text_, "point ", ticks, "\n"); }

  const std::string& text() const { return text_; }
  uint64_t payload_bytes() const { return payload_bytes_; }
  uint64_t events() const { return events_; }
  uint64_t unsorted() const { return unsorted_; }

 private:
  std::string text_;
  uint64_t payload_bytes_ = 0;
  uint64_t events_ = 0;
  uint64_t newest_ = 0;
  uint64_t unsorted_ = 0;
};

void Check(absl::string_view stream, size_t piece) {
  Digest whole;
  NettraceReader reader(whole);
  const absl::Status status = reader.Feed(AsBytes(stream));
  Require(whole.payload_bytes() <= stream.size());

  Digest pieces;
  NettraceReader slow(pieces);
  for (size_t at = 0; at < stream.size(); at += piece) static_cast<void>(slow.Feed(AsBytes(stream.substr(at, piece))));
  Require(pieces.text() == whole.text());
  Require(slow.Finish() == reader.Finish() && (status.ok() || reader.Finish() == status));

  Digest sorted;
  TimeOrder order(sorted, size_t{piece} << 8);
  NettraceReader third(order);
  static_cast<void>(third.Feed(AsBytes(stream)));
  order.Finish();
  Require(sorted.events() == whole.events() && sorted.payload_bytes() == whole.payload_bytes());
  Require(sorted.unsorted() == order.unsorted());
}

}  // namespace
}  // namespace clrsampler

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace clrsampler;  // NOLINT
  if (size < 1) return 0;
  Check({reinterpret_cast<const char*>(data) + 1, size - 1}, size_t{data[0]} + 1);
  return 0;
}
