#include "output/jitdump_profile.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"
#include "formats/jit/jitdump_writer.h"
#include "formats/unwind/eh_frame_writer.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr uint32_t kElfX64 = 62, kElfArm64 = 183;  // e_machine
constexpr size_t kMaxNameBytes = JitdumpParser::kMaxNameBytes / 2;
constexpr size_t kMaxFileNameBytes = 4096;  // PATH_MAX
// Bodies with more code than any compiler makes have no lines.
constexpr size_t kMaxDebugInfoBytes = JitdumpParser::kMaxRecordBytes / 2;
// To readers of the format this means "the same as in the entry before". perf takes it for a name, so it is never
// written.
constexpr absl::string_view kSameFile = "\xff";

constexpr char kHint[] = "sudo clrsampler --pid PID -o x.jitdump records one process with its code";

absl::Status CheckCode(const ProfileModel& model) {
  const auto refused = [](absl::string_view why) {
    return WithHint(absl::FailedPreconditionError(absl::StrCat("no jitdump of this profile: ", why)), kHint);
  };
  if (model.code.empty()) return refused("it has no machine code");
  const ModelCode& first = model.code.front();
  for (const ModelCode& code : model.code) {
    if (code.pid != first.pid) return refused("it has the code of several processes, and a jitdump is of one");
    if (code.machine != first.machine) return refused("it has code of several machines");
  }
  if (first.pid == 0) return refused("it does not say of which process its code is");
  return absl::OkStatus();
}

// The text without characters that would end it early, or break the lines of a program that prints it.
std::string OnOneLine(absl::string_view text, size_t most_bytes) {
  std::string line(text.substr(0, most_bytes));
  std::replace_if(
      line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; }, '?');
  return line;
}

// The tier as .NET's own jitdump has it.
std::string NameOf(const ProfileModel& model, const ModelFrame& frame) {
  std::string name = OnOneLine(model.text(frame.name), kMaxNameBytes);
  if (frame.tier != 0) absl::StrAppend(&name, "[", OnOneLine(model.text(frame.tier), 64), "]");
  return name;
}

std::vector<JitdumpDebugEntry> DebugEntries(const ProfileModel& model, const ModelCode& code) {
  std::vector<JitdumpDebugEntry> entries;
  absl::string_view file;
  size_t bytes = 0;
  for (const ModelCodeLine& at : code.lines) {
    absl::string_view name = model.text(at.file);
    const bool usable = !name.empty() && name.size() <= kMaxFileNameBytes && name != kSameFile &&
                        name.find('\0') == absl::string_view::npos;
    // Code that has no line keeps the file of the line before.
    if (!usable || at.line == 0) name = file;
    if (name.empty()) continue;  // nothing to end
    const uint32_t line = usable ? at.line : 0;
    entries.push_back({code.address + at.offset, line, 0, name});
    bytes += sizeof(uint64_t) * 2 + entries.back().file.size() + 1;
    file = name;
  }
  if (bytes > kMaxDebugInfoBytes) return {};
  if (!entries.empty()) entries.push_back({code.address + code.bytes.size(), entries.back().line, 0, file});
  return entries;
}

absl::StatusOr<std::vector<FrameStep>> StepsOf(const ModelCode& code, const ModelUnwind& part) {
  const std::span<const std::byte> function = AsBytes(code.bytes).subspan(part.begin, part.end - part.begin);
  if (code.machine == CodeMachine::kX64) return FrameStepsOfX64(AsBytes(part.bytes), function);
  return FrameStepsOfArm64(AsBytes(part.bytes), function);
}

// The unwind data of all parts that have some that can be read. nullopt: there is none.
std::optional<EhFrame> UnwindingOf(const ModelCode& code, SearchTable table) {
  const FrameMachine machine = code.machine == CodeMachine::kX64 ? FrameMachine::kX64 : FrameMachine::kArm64;
  const auto code_bytes = static_cast<uint32_t>(code.bytes.size());
  std::vector<FrameFunction> parts;
  for (const ModelUnwind& part : code.unwind) {
    absl::StatusOr<std::vector<FrameStep>> steps = StepsOf(code, part);
    if (!steps.ok()) continue;
    FrameFunction function{part.begin, part.end, *std::move(steps)};
    // Each is written alone, so that one that does not fit takes no other one with it.
    if (WriteEhFrame(machine, code_bytes, {&function, 1}).ok()) {
      parts.push_back(std::move(function));
    }
  }
  if (parts.empty()) return std::nullopt;
  absl::StatusOr<EhFrame> frame = WriteEhFrame(machine, code_bytes, parts, table);
  if (!frame.ok()) return std::nullopt;
  return *std::move(frame);
}

// The moment when each body begins to count, as JitdumpProfileWriter says, in that order.
std::vector<std::pair<uint64_t, const ModelCode*>> Stamped(const ProfileModel& model) {
  std::vector<const ModelCode*> bodies;
  for (const ModelCode& code : model.code) bodies.push_back(&code);
  std::stable_sort(bodies.begin(), bodies.end(),
                   [](const ModelCode* a, const ModelCode* b) { return a->time_ns < b->time_ns; });
  const uint64_t begin = std::max<uint64_t>(model.meta.start_monotonic_ns, 1);  // of perf, 0 is no time
  std::map<uint64_t, uint64_t> taken;                                           // end of each range that had code
  std::vector<std::pair<uint64_t, const ModelCode*>> stamped;
  for (const ModelCode* code : bodies) {
    uint64_t first = code->address, end = code->address + std::min<uint64_t>(code->bytes.size(), ~code->address);
    bool free = true;
    for (auto next = taken.upper_bound(first); next != taken.end() && next->second < end;) {
      first = std::min(first, next->second);
      end = std::max(end, next->first);
      free = false;
      next = taken.erase(next);
    }
    taken[end] = first;
    stamped.emplace_back(free ? begin : begin + code->time_ns, code);
  }
  std::stable_sort(stamped.begin(), stamped.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return stamped;
}

// Where bodies begin, ascending.
std::vector<uint64_t> Begins(const ProfileModel& model) {
  std::vector<uint64_t> begins;
  for (const ModelCode& code : model.code) begins.push_back(code.address);
  std::sort(begins.begin(), begins.end());
  return begins;
}

// The number of bytes of a body's frames that is said to lie in memory behind it. None of them do, but perf with
// libunwind reads only mapped memory. Another body that begins there would lose its name to these bytes, so the number
// is 0 there.
uint64_t MappedBytes(const std::vector<uint64_t>& begins, const ModelCode& code, uint64_t frame_bytes) {
  const auto next = std::upper_bound(begins.begin(), begins.end(), code.address);
  const uint64_t taken = (code.bytes.size() + 7) / 8 * 8 + frame_bytes;
  const uint64_t room = next == begins.end() ? ~code.address : *next - code.address;
  return taken <= room ? frame_bytes : 0;
}

struct Unwinding {
  EhFrame frame;
  uint64_t mapped_bytes = 0;
};

// libunwind would take the next body's code for the table that is not mapped. The bytes there make it end the stack, or
// go on by the frame pointer. Without a table it always goes on.
std::optional<Unwinding> UnwindingOf(const std::vector<uint64_t>& begins, const ModelCode& code) {
  std::optional<EhFrame> frame = UnwindingOf(code, SearchTable::kWritten);
  if (!frame) return std::nullopt;
  const uint64_t mapped_bytes = MappedBytes(begins, code, frame->bytes.size());
  if (mapped_bytes == 0) frame = UnwindingOf(code, SearchTable::kLeftOut);
  if (!frame) return std::nullopt;
  return Unwinding{*std::move(frame), mapped_bytes};
}

}  // namespace

absl::Status JitdumpProfileWriter::Write(const ProfileModel& model, const OutputSink& sink) const {
  RETURN_IF_ERROR(CheckCode(model));
  const auto stamped = Stamped(model);
  const std::vector<uint64_t> begins = Begins(model);
  JitdumpWriter writer;
  JitdumpHeader header;
  header.version = 1;
  header.elf_machine = model.code.front().machine == CodeMachine::kX64 ? kElfX64 : kElfArm64;
  header.pid = model.code.front().pid;
  header.timestamp = stamped.front().first;
  writer.Header(header);
  for (const auto& [stamp, code] : stamped) {
    const std::vector<JitdumpDebugEntry> entries = DebugEntries(model, *code);
    if (!entries.empty()) {
      writer.DebugInfo({stamp, code->address, entries.size(), entries});
    }
    if (const std::optional<Unwinding> unwinding = UnwindingOf(begins, *code)) {
      writer.Unwinding(stamp, unwinding->frame.header_bytes, unwinding->mapped_bytes, AsBytes(unwinding->frame.bytes));
    }
    writer.Load(NameOf(model, model.frames[code->frame]), stamp, code->address, AsBytes(code->bytes));
    RETURN_IF_ERROR(sink(writer.TakeBytes()));
  }
  writer.Close(stamped.back().first);
  return sink(writer.TakeBytes());
}

}  // namespace clrsampler
