#include "cli/stacks_command.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "cli/frame_words.h"
#include "cli/lines_option.h"
#include "cli/lock_words.h"
#include "cli/names_option.h"
#include "formats/profile/profile_model.h"
#include "output/summary.h"
#include "pipeline/agent_sandbox.h"
#include "pipeline/thread_stacks.h"
#include "status/status.h"

namespace clrsampler {
namespace {

const char* EndText(StackEnd end) {
  switch (end) {
    case StackEnd::kComplete:
      return "complete";
    case StackEnd::kTruncated:
      return "truncated";
    case StackEnd::kBroken:
      return "broken";
  }
  return "";
}

std::string ToJson(const ThreadStacks& stacks, const ThreadStack& thread) {
  nlohmann::ordered_json json = {{"tid", thread.tid}, {"comm", thread.comm}, {"end", EndText(thread.end)}};
  if (!thread.trouble.empty()) json["trouble"] = thread.trouble;
  AddLockJson(stacks, thread, json);
  json["frames"] = nlohmann::ordered_json::array();
  for (const ThreadFrame& frame : thread.frames) {
    nlohmann::ordered_json row = {{"ip", absl::StrCat("0x", absl::Hex(frame.user.address))},
                                  {"name", frame.frame.text},
                                  {"kind", FrameKindText(frame.frame)},
                                  {"how", FrameOriginText(frame.user.origin)}};
    if (const SourcePlace& place = frame.frame.place; place.line != 0) {
      row["file"] = place.file;
      row["line"] = place.line;
      row["column"] = place.column;
      row["line_kind"] = LineKindText(place.kind);
    }
    if (frame.user.doubt != FrameDoubt::kNone) row["doubt"] = std::string(MarkText(frame.user.doubt));
    json["frames"].push_back(std::move(row));
  }
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void Print(const ThreadStacks& stacks, const ThreadStack& thread) {
  std::printf("thread %u %s\n", thread.tid, PrintableText(thread.comm).c_str());
  if (!thread.trouble.empty()) std::printf("  no stack: %s\n", PrintableText(thread.trouble).c_str());
  if (const std::string lock = LockSentence(stacks, thread); !lock.empty()) std::printf("  %s\n", lock.c_str());
  for (const ThreadFrame& frame : thread.frames) {
    const SourcePlace& place = frame.frame.place;
    const std::string line = place.line == 0 ? "" : absl::StrCat("  ", PrintableText(place.file), ":", place.line);
    std::printf("  %s%s\n", PrintableText(frame.frame.text).c_str(), line.c_str());
    if (frame.user.doubt != FrameDoubt::kNone) std::printf("  %s\n", std::string(MarkText(frame.user.doubt)).c_str());
  }
  if (thread.end == StackEnd::kBroken) std::printf("  [the stack could not be followed further]\n");
  std::printf("\n");
}

}  // namespace

void DeclareStacksOptions(CLI::App& app, StacksConfig& config) {
  app.add_option("--pid,-p", config.pid, "the process")->required()->type_name("PID");
  DeclareNames(app, config.names);
  DeclareLines(app, config.lines);
  app.add_flag("--json", config.json,
               "one thread a line: tid, comm, end, waits_for, deadlock, frames with ip, name, kind, how");
}

absl::Status RunStacks(const StacksConfig& config) {
  RecordOptions nothing_planted;
  nothing_planted.roles = false;
  const std::unique_ptr<FileBroker> files = FileBrokerOfCommand();
  const std::shared_ptr<LineHelper> line_helper = LineHelperFor(config.lines);
  RETURN_IF_ERROR(EnterAgentSandbox(nothing_planted, {.stops_threads = true}).status());
  ASSIGN_OR_RETURN(const ThreadStacks stacks,
                   TakeThreadStacks(config.pid, config.names, config.lines, files.get(), line_helper));
  if (const std::string deadlocks = DeadlockText(stacks); !config.json && !deadlocks.empty()) {
    std::printf("%s\n", deadlocks.c_str());
  }
  for (const ThreadStack& thread : stacks.threads) {
    if (config.json) {
      std::printf("%s\n", ToJson(stacks, thread).c_str());
    } else {
      Print(stacks, thread);
    }
  }
  SayNoticesOf(stacks);
  return absl::OkStatus();
}

}  // namespace clrsampler
