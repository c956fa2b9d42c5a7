#include "cli/attach_command.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/duration_option.h"
#include "cli/line_output.h"
#include "formats/inprocess/library_events.h"
#include "pipeline/agent_sandbox.h"
#include "status/status.h"

namespace clrsampler {
namespace {

using Counts = std::map<std::string, uint64_t>;

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const absl::string_view name : LibraryEventNames()) names.emplace_back(name);
  return names;
}

void Print(LineOutput& output, const Counts& counts, const LibraryWatchResult& result, bool json) {
  if (json) {
    const nlohmann::ordered_json object = {{"events", counts},
                                           {"lost", result.lost},
                                           {"left_out", result.left_out},
                                           {"unread_bytes", result.unread_bytes},
                                           {"stayed", result.stayed}};
    output.Print(object.dump());
    return;
  }
  for (const auto& [name, count] : counts) output.Print(absl::StrFormat("%12u  %s", count, name));
}

}  // namespace

uint64_t LibraryKindsFor(const std::vector<std::string>& names, bool at_start) {
  uint64_t kinds = 0;
  for (const std::string& name : names) kinds |= LibraryKindsOf(name);
  if (kinds != 0) return kinds;
  const uint64_t objects = at_start ? InprocessKindBit(InprocessKind::kObjectAllocated) : 0;
  return UsualLibraryKinds() & ~objects;
}

void SayWhatTheLibraryMissed(const LibraryWatchResult& result) {
  if (result.lost > 0) {
    std::fprintf(stderr,
                 "note: %llu events were lost, since the ring was full\n"
                 "  hint: ask for fewer with --kind\n",
                 static_cast<unsigned long long>(result.lost));
  }
  if (result.left_out > 0) {
    std::fprintf(stderr,
                 "note: %llu methods have no map, since a module was unloaded while maps were sent\n"
                 "  hint: try again\n",
                 static_cast<unsigned long long>(result.left_out));
  }
  if (result.unread_bytes > 0) {
    std::fprintf(stderr, "note: the last %llu bytes of events can't be read, since one of them was never finished\n",
                 static_cast<unsigned long long>(result.unread_bytes));
  }
  if (result.stayed) {
    std::fputs("note: the runtime has not unloaded the library, which is silent from now on\n", stderr);
  }
}

void DeclareAttachOptions(CLI::App& app, AttachConfig& config) {
  app.add_option("--pid,-p", config.pid, "the process")->required()->check(CLI::Range(1u, 1u << 22))->type_name("PID");
  DeclareDuration(app, config.duration);
  app.add_option("--kind", config.kinds,
                 "only these, with commas between them: ThreadCreated, ExceptionThrown, ...; without it all but those "
                 "of each frame and each type")
      ->delimiter(',')
      ->check(CLI::IsMember(Names()))
      ->type_name("KIND");
  app.add_flag("--json", config.json, "as JSON");
}

absl::Status RunAttach(const AttachConfig& config) {
  const std::unique_ptr<FileBroker> files = FileBrokerOfCommand();
  LibraryWatchOptions options;
  options.files = files.get();
  options.pid = config.pid;
  options.kinds = LibraryKindsFor(config.kinds);
  if (config.duration.has_value()) {
    ASSIGN_OR_RETURN(options.duration_ns, ParseDurationNs("--duration", *config.duration));
  }
  Counts counts;
  const auto began = [&](uint32_t /*pid*/) {
    std::fprintf(stderr, "the library is in process %u; %s\n", config.pid,
                 config.duration.has_value() ? absl::StrCat("for ", *config.duration).c_str() : "Ctrl-C takes it out");
  };
  const absl::StatusOr<LibraryWatchResult> result = WatchLibrary(
      options, began, [&](const LibraryRecord& record) { ++counts[std::string(LibraryEventName(record.kind))]; });
  RETURN_IF_ERROR(result.status());
  LineOutput output(STDOUT_FILENO);
  Print(output, counts, *result, config.json);
  SayWhatTheLibraryMissed(*result);
  return output.Finish();
}

}  // namespace clrsampler
