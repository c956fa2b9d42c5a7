// Shows recordings of stacks (clrsampler --save-stacks), and whether they still unwind to the same frames.
//
//   stack_recordings print FILE    the doubtful stacks, with the words that were there
//   stack_recordings check FILE... exit status 1 and a line for each stack that comes out otherwise than recorded
//   stack_recordings accept FILE...
//                                  takes what stacks come out as now for what they have to be. After a change of the
//                                  unwinder whose differences (check) were looked at
//   stack_recordings select N any|clean|doubtful FILE OUT
//                                  writes the N most different stacks with only what they need (stack_selection.h);
//                                  nothing is written if there are none
#include <fcntl.h>

#include <cstdio>
#include <cstring>
#include <span>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "apps/stack_selection.h"
#include "formats/byte_reader.h"
#include "os/file_io.h"
#include "unwind/stack_recording.h"
#include "unwind/stack_unwinder.h"

namespace clrsampler {
namespace {

constexpr size_t kMaxBytes = 256 << 20;

const char* Word(FrameOrigin origin) {
  static constexpr const char* kWords[] = {"sampled", "chain", "replay", "table", "stub", "fallback"};
  return kWords[static_cast<size_t>(origin)];
}

std::string Text(const CfiRow& row) {
  return absl::StrCat("cfa ", static_cast<int>(row.cfa), "+", row.cfa_offset, " fp ", static_cast<int>(row.fp), "+",
                      row.fp_offset, " ra ", static_cast<int>(row.ra), "+", row.ra_offset);
}

std::string Text(const CodeAt& code) {
  switch (code.kind) {
    case CodeKind::kManaged:
      if (code.managed == nullptr) return "managed";
      return absl::StrCat("managed ", absl::Hex(code.managed->begin), " prologue ", code.managed->unwind.prologue_bytes,
                          code.managed->funclet ? " funclet" : "", code.managed->osr ? " osr" : "");
    case CodeKind::kNative: {
      if (!code.has_row) return code.between_rows ? "native between rows" : "native without data";
      return absl::StrCat("native ", Text(code.row), code.has_leaf_row ? "; leaf " : "",
                          code.has_leaf_row ? Text(code.leaf_row) : "");
    }
    case CodeKind::kStub:
      return "stub";
    case CodeKind::kReturnTrap:
      return "return trap";
    case CodeKind::kUnknown:
      return code.mapped ? "unknown" : "no code";
  }
  return "";
}

void Print(const StackRecording& recording, const RecordedStack& stack) {
  const absl::StatusOr<RawStack> raw = RawStack::Parse(std::as_bytes(std::span(stack.record)));
  if (!raw.ok()) return;
  const wire_cpu_sample& sample = raw->sample();
  std::printf("ip %llx sp %llx fp %llx (sp%+lld) stop %d end %d%s\n", sample.ip, sample.sp, sample.fp,
              static_cast<long long>(sample.fp - sample.sp), sample.stop, static_cast<int>(stack.result.end),
              (sample.flags & WIRE_SAMPLE_IN_KERNEL) != 0 ? " in kernel" : "");
  uint64_t next = sample.sp;
  bool after_words_only = false;
  const auto tail = raw->ForEachFrame([&](const RawStack::Frame& frame) {
    if (after_words_only) next = frame.frame_address - 8 * frame.gap.size();
    after_words_only = frame.words_only;
    std::printf("  words sp+%llu..%llu then frame sp+%llu%s [%llx %llx]\n",
                static_cast<unsigned long long>(next - sample.sp),
                static_cast<unsigned long long>(next - sample.sp + 8 * frame.gap.size()),
                static_cast<unsigned long long>(frame.frame_address - sample.sp),
                frame.words_only ? " none"
                : frame.resumed  ? " resumed"
                                 : "",
                static_cast<unsigned long long>(frame.saved_fp), static_cast<unsigned long long>(frame.return_address));
    next = frame.frame_address + 16;
  });
  std::printf("  tail sp+%llu..%llu\n", static_cast<unsigned long long>(next - sample.sp),
              static_cast<unsigned long long>(next - sample.sp + 8 * tail.size()));
  RecordedCode code(recording);
  for (const UserFrame& frame : stack.result.frames) {
    std::printf("  %llx %s%s: %s\n", static_cast<unsigned long long>(frame.address), Word(frame.origin),
                frame.doubt != FrameDoubt::kNone
                    ? (frame.doubt == FrameDoubt::kContradiction ? " CONTRADICTION" : " MISSING")
                    : "",
                Text(code.At(frame.lookup_address)).c_str());
  }
  std::printf("\n");
}

int Check(const char* path, const StackRecording& recording) {
  int different = 0;
  for (size_t i = 0; i < recording.stacks.size(); ++i) {
    if (WalkRecorded(recording, recording.stacks[i]) == recording.stacks[i].result) continue;
    std::printf("%s: stack %zu is another one\n", path, i);
    ++different;
  }
  std::printf("%s: %zu stacks, %d different\n", path, recording.stacks.size(), different);
  return different;
}

absl::StatusOr<StackRecording> Read(const char* path) {
  const absl::StatusOr<std::string> bytes = ReadWholeFile(path, kMaxBytes);
  if (!bytes.ok()) return bytes.status();
  return StackRecording::Parse(AsBytes(*bytes));
}

int Fail(const char* path, const absl::Status& status) {
  std::fprintf(stderr, "%s: %s\n", path, std::string(status.message()).c_str());
  return 1;
}

int Write(const char* path, const StackRecording& recording) {
  const UniqueFd out(open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  const absl::Status status = WriteAll(out.get(), recording.Serialize());
  return status.ok() ? 0 : Fail(path, status);
}

int Select(char** arguments) {
  uint32_t count = 0;
  const std::string choice = arguments[1];
  if (!absl::SimpleAtoi(arguments[0], &count) || (choice != "any" && choice != "clean" && choice != "doubtful"))
    return 2;
  const absl::StatusOr<StackRecording> recording = Read(arguments[2]);
  if (!recording.ok()) return Fail(arguments[2], recording.status());
  const StackRecording selected = SelectStacks(*recording, count,
                                               choice == "any"     ? StackChoice::kAny
                                               : choice == "clean" ? StackChoice::kClean
                                                                   : StackChoice::kDoubtful);
  std::printf("%s: %zu of %zu stacks\n", arguments[2], selected.stacks.size(), recording->stacks.size());
  if (selected.stacks.empty()) return 0;
  return Write(arguments[3], selected);
}

int Main(int argc, char** argv) {
  if (argc == 6 && std::strcmp(argv[1], "select") == 0) return Select(argv + 2);
  if (argc < 3 || (std::strcmp(argv[1], "print") != 0 && std::strcmp(argv[1], "check") != 0 &&
                   std::strcmp(argv[1], "accept") != 0)) {
    std::fprintf(stderr,
                 "usage: stack_recordings print|check|accept FILE..., or select N any|clean|doubtful FILE OUT\n");
    return 2;
  }
  int bad = 0;
  for (int i = 2; i < argc; ++i) {
    const absl::StatusOr<StackRecording> recording = Read(argv[i]);
    if (!recording.ok()) return Fail(argv[i], recording.status());
    if (std::strcmp(argv[1], "accept") == 0) {
      StackRecording accepted = *recording;
      for (RecordedStack& stack : accepted.stacks) stack.result = WalkRecorded(accepted, stack);
      if (const int failed = Write(argv[i], accepted); failed != 0) return failed;
      continue;
    }
    if (std::strcmp(argv[1], "check") == 0) {
      bad += Check(argv[i], *recording);
      continue;
    }
    for (const RecordedStack& stack : recording->stacks) {
      if (IsDoubtful(stack.result)) Print(*recording, stack);
    }
  }
  return bad == 0 ? 0 : 1;
}

}  // namespace
}  // namespace clrsampler

int main(int argc, char** argv) { return clrsampler::Main(argc, argv); }
