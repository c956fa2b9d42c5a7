#include "tape/run_json.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace clrsampler {
namespace {

using Json = nlohmann::json;

uint32_t Number(const Json& json, const char* key, uint32_t usual, uint32_t least, uint32_t most) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number_unsigned()) return usual;
  return static_cast<uint32_t>(std::clamp<uint64_t>(found->get<uint64_t>(), least, most));
}

bool Flag(const Json& json, const char* key, bool usual) {
  const auto found = json.find(key);
  return found == json.end() || !found->is_boolean() ? usual : found->get<bool>();
}

std::optional<uint64_t> Nanoseconds(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number_unsigned()) return std::nullopt;
  return found->get<uint64_t>();
}

std::string Word(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found == json.end() || !found->is_string() ? "" : found->get<std::string>();
}

std::vector<std::string> Words(const Json& json, const char* key) {
  std::vector<std::string> words;
  const auto found = json.find(key);
  if (found == json.end() || !found->is_array()) return words;
  for (const Json& word : *found) {
    if (word.is_string()) words.push_back(word.get<std::string>());
  }
  return words;
}

}  // namespace

std::string RunJson(const RecordOptions& options, const RunOrigin& origin) {
  Json json = {{"frequency_hz", options.frequency_hz},
               {"max_frames", options.max_frames},
               {"gap_words", options.gap_words},
               {"stack_words", options.stack_words},
               {"replay", options.unwind_data},
               {"async_stacks", options.async_stacks},
               {"view", static_cast<uint32_t>(options.view)},
               {"min_wait_us", options.min_wait_ns / 1000},
               {"wakers", options.wakers},
               {"roles", options.roles},
               {"try_unknown_runtime", options.try_unknown_runtime},
               {"hook_share_ppm", static_cast<uint32_t>(options.probe_cost_share * 1e6)},
               {"mark_suspension", options.mark_suspension},
               {"only_blame", options.only_blame},
               {"names", static_cast<uint32_t>(options.names)},
               {"lines", options.lines.wanted},
               {"code", options.keep_code},
               {"pdb_folders", options.lines.pdb_folders},
               {"pids", options.pids},
               {"command", options.command}};
  json["host"] = origin.host;
  json["comm"] = origin.comm;
  json["boot_unix_ns"] = origin.boot_unix_ns;
  if (options.duration_ns) json["duration_ns"] = *options.duration_ns;
  // A command line may hold bytes that are no text.
  return json.dump(1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<RecordOptions> ParseRunJson(absl::string_view text) {
  const Json json = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::DataLossError("the stream does not say what was recorded");
  RecordOptions options;
  options.frequency_hz = Number(json, "frequency_hz", options.frequency_hz, 1, 10'000);
  options.max_frames = Number(json, "max_frames", options.max_frames, 1, WIRE_MAX_USER_FRAMES);
  options.gap_words = Number(json, "gap_words", options.gap_words, 0, WIRE_MAX_GAP_WORDS);
  options.stack_words = Number(json, "stack_words", options.stack_words, 64, 8192);
  options.unwind_data = Flag(json, "replay", true);
  options.async_stacks = Flag(json, "async_stacks", false);
  options.view = static_cast<RecordView>(Number(json, "view", 0, 0, static_cast<uint32_t>(RecordView::kWall)));
  options.min_wait_ns = Number(json, "min_wait_us", 1000, 0, UINT32_MAX) * uint64_t{1000};
  options.wakers = Flag(json, "wakers", false);
  options.roles = Flag(json, "roles", true);
  options.try_unknown_runtime = Flag(json, "try_unknown_runtime", false);
  options.probe_cost_share = Number(json, "hook_share_ppm", 3000, 0, 1'000'000) / 1e6;
  options.mark_suspension = Flag(json, "mark_suspension", false);
  options.only_blame = Flag(json, "only_blame", false);
  options.names = static_cast<NameStyle>(Number(json, "names", 0, 0, static_cast<uint32_t>(NameStyle::kRaw)));
  options.lines.wanted = Flag(json, "lines", false);
  options.keep_code = Flag(json, "code", false);
  if (const auto pids = json.find("pids"); pids != json.end() && pids->is_array()) {
    for (const Json& pid : *pids) {
      if (pid.is_number_unsigned()) options.pids.push_back(static_cast<uint32_t>(pid.get<uint64_t>()));
    }
  }
  options.lines.pdb_folders = Words(json, "pdb_folders");
  options.command = Words(json, "command");
  options.duration_ns = Nanoseconds(json, "duration_ns");
  options.origin = {Word(json, "host"), Word(json, "comm"), Nanoseconds(json, "boot_unix_ns").value_or(0)};
  return options;
}

}  // namespace clrsampler
