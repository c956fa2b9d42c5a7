#include "unwind/stack_recording.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "absl/strings/string_view.h"
#include "formats/byte_reader.h"

namespace clrsampler {
namespace {

constexpr absl::string_view kMagic = "CLRSTK2\n";
constexpr uint32_t kNoFunction = UINT32_MAX;
constexpr size_t kHeaderWords = sizeof(wire_cpu_sample) / sizeof(uint64_t);
// General registers of a sample, for recordings that have them.
constexpr uint32_t kMaxGeneral = 64;
// Flags of an answer.
constexpr uint8_t kBetweenRows = 1, kHasLeafRow = 2, kNoCall = 4, kCalls = 8;
constexpr uint8_t kAllFlags = 15;
// The most words of a sample, and of all of them: a run of zeros stands for more words than it takes.
constexpr uint32_t kMaxWords = 1 << 15;
constexpr uint64_t kMaxAllWords = 1 << 23;

class Writer {
 public:
  template <typename T>
  void Put(T value) {
    static_assert(std::is_integral_v<T> || std::is_enum_v<T>);
    const auto* bytes = reinterpret_cast<const char*>(&value);
    out_.append(bytes, sizeof value);
  }
  void Put(std::span<const std::byte> bytes) {
    Put(static_cast<uint32_t>(bytes.size()));
    Raw(AsText(bytes));
  }
  void Raw(absl::string_view text) { out_.append(text.data(), text.size()); }
  std::string Take() { return std::move(out_); }

 private:
  std::string out_;
};

// Gives zeros after the first value that is not there.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  bool ok() const { return ok_; }
  void Fail() { ok_ = false; }
  template <typename T>
  T Get() {
    if constexpr (std::is_enum_v<T>) {
      return static_cast<T>(Get<std::underlying_type_t<T>>());
    } else if constexpr (std::is_same_v<T, bool>) {
      return Get<uint8_t>() != 0;
    } else {
      const std::span<const std::byte> bytes = Bytes(sizeof(T));
      T value{};
      if (ok_) std::memcpy(&value, bytes.data(), sizeof value);
      return value;
    }
  }
  std::span<const std::byte> Bytes(size_t count) {
    if (!ok_ || count > bytes_.size()) {
      ok_ = false;
      return {};
    }
    const auto taken = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return taken;
  }
  // A count of things of at least `least_bytes` each.
  uint32_t Count(size_t least_bytes) {
    const auto count = Get<uint32_t>();
    if (count > bytes_.size() / least_bytes) ok_ = false;
    return ok_ ? count : 0;
  }
  template <typename E>
  E Enum(E last) {
    const E value = Get<E>();
    if (static_cast<uint64_t>(value) > static_cast<uint64_t>(last)) ok_ = false;
    return ok_ ? value : E{};
  }

 private:
  std::span<const std::byte> bytes_;
  bool ok_ = true;
};

void Put(Writer& out, const ManagedFunction& function) {
  out.Put(function.begin);
  out.Put(function.end);
  out.Put(function.method_begin);
  out.Put(static_cast<uint8_t>(function.resumption_stub ? 2 : function.funclet));  // which part of its method
  out.Put(static_cast<uint8_t>(function.osr));
  out.Put(function.osr_frame_bytes);
  out.Put(function.unwind.prologue_bytes);
  out.Put(function.unwind.frame_register);
  out.Put(function.unwind.frame_offset);
  out.Put(static_cast<uint32_t>(function.unwind.codes.size()));
  for (const UnwindCode& code : function.unwind.codes) {
    out.Put(code.prologue_offset);
    out.Put(code.op);
    out.Put(code.reg);
    out.Put(code.value);
  }
  out.Put(function.code);
}

std::shared_ptr<const ManagedFunction> GetFunction(Reader& in) {
  auto function = std::make_shared<ManagedFunction>();
  function->begin = in.Get<uint64_t>();
  function->end = in.Get<uint64_t>();
  function->method_begin = in.Get<uint64_t>();
  const auto part = in.Get<uint8_t>();
  function->funclet = part == 1;
  function->resumption_stub = part == 2;
  function->osr = in.Get<bool>();
  function->osr_frame_bytes = in.Get<uint32_t>();
  function->unwind.prologue_bytes = in.Get<uint8_t>();
  function->unwind.frame_register = in.Get<uint8_t>();
  function->unwind.frame_offset = in.Get<uint32_t>();
  const uint32_t codes = in.Count(7);
  for (uint32_t i = 0; i < codes && in.ok(); ++i) {
    UnwindCode code;
    code.prologue_offset = in.Get<uint8_t>();
    code.op = in.Enum(UnwindOp::kSave);
    code.reg = in.Get<uint8_t>();
    code.value = in.Get<uint32_t>();
    function->unwind.codes.push_back(code);
  }
  const std::span<const std::byte> code = in.Bytes(in.Count(1));
  auto copy = std::make_shared<const std::vector<std::byte>>(code.begin(), code.end());
  function->code = *copy;
  function->keep_alive = std::move(copy);
  return function;
}

void Put(Writer& out, const CfiRow& row) {
  out.Put(row.cfa);
  out.Put(row.fp);
  out.Put(row.ra);
  out.Put(row.cfa_register);
  out.Put(static_cast<uint8_t>(row.signal_frame));
  out.Put(row.cfa_offset);
  out.Put(row.fp_offset);
  out.Put(row.ra_offset);
}

CfiRow GetRow(Reader& in) {
  CfiRow row;
  row.cfa = in.Enum(CfaRule::kPlt);  // the last one
  row.fp = in.Enum(RegisterRule::kUnsupported);
  row.ra = in.Enum(RegisterRule::kUnsupported);
  row.cfa_register = in.Get<uint8_t>();
  row.signal_frame = in.Get<bool>();
  row.cfa_offset = in.Get<int32_t>();
  row.fp_offset = in.Get<int32_t>();
  row.ra_offset = in.Get<int32_t>();
  return row;
}

// The parts of a sample that unwinding needs, field by field: a recording outlives changes of wire.h. Runs of zeros are
// written as their length: selections put them in place of words that are not needed.
void PutSample(Writer& out, std::span<const uint64_t> record) {
  wire_cpu_sample sample{};
  if (record.size() >= kHeaderWords) std::memcpy(&sample, record.data(), sizeof sample);
  out.Put(static_cast<uint64_t>(sample.header.time_ns));
  out.Put(static_cast<uint64_t>(sample.ip));
  out.Put(static_cast<uint64_t>(sample.sp));
  out.Put(static_cast<uint64_t>(sample.fp));
  out.Put(static_cast<uint64_t>(sample.lr));
  out.Put(uint32_t{WIRE_GENERAL_REGISTERS});
  for (const uint64_t value : sample.general) out.Put(value);
  out.Put(static_cast<uint32_t>(sample.flags));
  out.Put(static_cast<uint16_t>(sample.stop));
  out.Put(static_cast<uint16_t>(sample.kernel_frames));
  out.Put(static_cast<uint16_t>(sample.user_frames));
  out.Put(static_cast<uint16_t>(sample.snapshots));
  out.Put(static_cast<uint32_t>(sample.user_words));
  const std::span<const uint64_t> words = record.subspan(std::min(record.size(), kHeaderWords));
  out.Put(static_cast<uint32_t>(words.size()));
  for (size_t at = 0; at < words.size();) {
    size_t zeros = at;
    while (zeros < words.size() && words[zeros] == 0) ++zeros;
    size_t end = zeros;
    while (end < words.size() && words[end] != 0) ++end;
    out.Put(static_cast<uint32_t>(zeros - at));
    out.Put(std::as_bytes(words.subspan(zeros, end - zeros)));
    at = end;
  }
}

std::vector<uint64_t> GetSample(Reader& in, uint64_t& words_left) {
  wire_cpu_sample sample{};
  sample.header.kind = WIRE_CPU_SAMPLE;
  sample.header.time_ns = in.Get<uint64_t>();
  sample.ip = in.Get<uint64_t>();
  sample.sp = in.Get<uint64_t>();
  sample.fp = in.Get<uint64_t>();
  sample.lr = in.Get<uint64_t>();
  const uint32_t general = in.Get<uint32_t>();
  if (general > kMaxGeneral) in.Fail();
  for (uint32_t i = 0; i < general && in.ok(); ++i) {
    const auto value = in.Get<uint64_t>();
    if (i < WIRE_GENERAL_REGISTERS) sample.general[i] = value;
  }
  sample.flags = in.Get<uint32_t>();
  sample.stop = in.Get<uint16_t>();
  sample.kernel_frames = in.Get<uint16_t>();
  sample.user_frames = in.Get<uint16_t>();
  sample.snapshots = in.Get<uint16_t>();
  sample.user_words = in.Get<uint32_t>();
  const auto count = in.Get<uint32_t>();
  if (count > kMaxWords || count > words_left) in.Fail();
  words_left -= in.ok() ? count : 0;
  std::vector<uint64_t> record;
  while (in.ok() && record.size() < count) {
    const auto zeros = in.Get<uint32_t>();
    const std::span<const std::byte> bytes = in.Bytes(in.Count(1));
    if (!in.ok() || zeros > count - record.size() || bytes.size() / 8 > count - record.size() - zeros ||
        bytes.size() % 8 != 0 || zeros + bytes.size() == 0) {
      in.Fail();
      break;
    }
    const size_t at = record.size() + zeros;
    record.resize(at + bytes.size() / 8);
    if (!bytes.empty()) std::memcpy(record.data() + at, bytes.data(), bytes.size());
  }
  sample.header.size = static_cast<uint32_t>(sizeof sample + record.size() * sizeof(uint64_t));
  record.insert(record.begin(), kHeaderWords, 0);
  std::memcpy(record.data(), &sample, sizeof sample);
  return record;
}

}  // namespace

std::string StackRecording::Serialize() const {
  std::vector<const ManagedFunction*> functions;
  absl::flat_hash_map<const ManagedFunction*, uint32_t> numbers;
  std::vector<uint64_t> addresses;
  for (const auto& [address, answer] : code) addresses.push_back(address);
  std::sort(addresses.begin(), addresses.end());
  for (const uint64_t address : addresses) {
    const ManagedFunction* function = code.at(address).managed.get();
    if (function != nullptr && numbers.emplace(function, functions.size()).second) functions.push_back(function);
  }
  Writer out;
  out.Raw(kMagic);
  out.Put(static_cast<uint32_t>(functions.size()));
  out.Put(static_cast<uint32_t>(addresses.size()));
  out.Put(static_cast<uint32_t>(stacks.size()));
  for (const ManagedFunction* function : functions) Put(out, *function);
  for (const uint64_t address : addresses) {
    const CodeAt& answer = code.at(address);
    out.Put(address);
    out.Put(answer.kind);
    out.Put(static_cast<uint8_t>(answer.mapped));
    out.Put(static_cast<uint8_t>(answer.has_row));
    out.Put(static_cast<uint8_t>((answer.between_rows ? kBetweenRows : 0) | (answer.has_leaf_row ? kHasLeafRow : 0) |
                                 (answer.no_call ? kNoCall : 0) | (answer.call_distance != 0 ? kCalls : 0)));
    out.Put(answer.managed == nullptr ? kNoFunction : numbers.at(answer.managed.get()));
    Put(out, answer.row);
    if (answer.has_leaf_row) Put(out, answer.leaf_row);
    if (answer.call_distance != 0) out.Put(answer.call_distance);
  }
  for (const RecordedStack& stack : stacks) {
    PutSample(out, stack.record);
    out.Put(stack.result.end);
    out.Put(static_cast<uint32_t>(stack.result.frames.size()));
    for (const UserFrame& frame : stack.result.frames) {
      out.Put(frame.address);
      out.Put(frame.lookup_address);
      out.Put(frame.origin);
      out.Put(frame.doubt);
    }
  }
  return out.Take();
}

namespace {

absl::Status ParseInto(StackRecording& recording, std::span<const std::byte> bytes) {
  Reader in(bytes);
  if (AsText(in.Bytes(kMagic.size())) != kMagic) return absl::DataLossError("not a recording of stacks");
  const auto function_count = in.Get<uint32_t>();
  const auto answer_count = in.Get<uint32_t>();
  const auto stack_count = in.Get<uint32_t>();
  uint64_t words_left = kMaxAllWords;
  std::vector<std::shared_ptr<const ManagedFunction>> functions;
  for (uint32_t i = 0; i < function_count && in.ok(); ++i) functions.push_back(GetFunction(in));
  for (uint32_t i = 0; i < answer_count && in.ok(); ++i) {
    const auto address = in.Get<uint64_t>();
    CodeAt answer;
    answer.kind = in.Enum(CodeKind::kReturnTrap);
    answer.mapped = in.Get<bool>();
    answer.has_row = in.Get<bool>();
    const auto flags = in.Get<uint8_t>();
    if ((flags & ~kAllFlags) != 0) in.Fail();
    answer.between_rows = (flags & kBetweenRows) != 0;
    answer.no_call = (flags & kNoCall) != 0;
    const auto number = in.Get<uint32_t>();
    answer.row = GetRow(in);
    answer.has_leaf_row = (flags & kHasLeafRow) != 0;
    if (answer.has_leaf_row) answer.leaf_row = GetRow(in);
    if ((flags & kCalls) != 0 && (answer.call_distance = in.Get<int32_t>()) == 0) in.Fail();
    if (!in.ok()) break;
    if (number != kNoFunction) {
      if (number >= functions.size()) return absl::DataLossError("a function that is not in the recording");
      answer.managed = functions[number];
    }
    recording.code[address] = std::move(answer);
  }
  for (uint32_t i = 0; i < stack_count && in.ok(); ++i) {
    RecordedStack stack;
    stack.record = GetSample(in, words_left);
    stack.result.end = in.Enum(StackEnd::kBroken);
    const uint32_t frames = in.Count(18);
    for (uint32_t k = 0; k < frames && in.ok(); ++k) {
      UserFrame frame;
      frame.address = in.Get<uint64_t>();
      frame.lookup_address = in.Get<uint64_t>();
      frame.origin = in.Enum(FrameOrigin::kFallback);
      frame.doubt = in.Enum(FrameDoubt::kContradiction);
      stack.result.frames.push_back(frame);
    }
    if (!in.ok()) break;
    recording.stacks.push_back(std::move(stack));
  }
  if (!in.ok()) return absl::DataLossError("the recording is cut short or damaged");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<StackRecording> StackRecording::Parse(std::span<const std::byte> bytes) {
  StackRecording recording;
  if (const absl::Status status = ParseInto(recording, bytes); !status.ok()) return status;
  return recording;
}

StackRecording StackRecording::ParseFront(std::span<const std::byte> bytes) {
  StackRecording recording;
  ParseInto(recording, bytes).IgnoreError();
  return recording;
}

const CodeAt& RecordedCode::At(uint64_t address) {
  const auto found = recording_.code.find(address);
  return found == recording_.code.end() ? unknown_ : found->second;
}

const CodeAt& CodeRecorder::At(uint64_t address) {
  const CodeAt& answer = code_.At(address);
  recording_.code.try_emplace(address, answer);
  return answer;
}

}  // namespace clrsampler
