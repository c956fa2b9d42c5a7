#include "serve/flight_recorder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "formats/profile/profile_reader.h"
#include "os/file_io.h"
#include "os/unique_fd.h"
#include "output/profile_writer.h"
#include "output/wait_sites.h"
#include "profile/model_filter.h"
#include "profile/model_merge.h"
#include "status/status.h"

namespace clrsampler {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kInfo[] = ".info.json";
constexpr char kProfile[] = ".json";
constexpr size_t kMaxInfoBytes = 64 << 20;
// The most entries of a list in .info.json.
constexpr size_t kMaxListed = 5000;

std::string Dump(const Json& json) { return json.dump(1, ' ', false, Json::error_handler_t::replace); }

// Only file names of our own, as Observe makes them (20261123T045500Z-1). Other files in the folder are not ours.
bool IsId(absl::string_view text) {
  constexpr absl::string_view kTime = "00000000T000000Z-";  // a 0 for any digit
  if (text.size() <= kTime.size() || text.size() > 64) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char expected = i < kTime.size() ? kTime[i] : '0';
    if (expected == '0' ? !absl::ascii_isdigit(text[i]) : text[i] != expected) return false;
  }
  return true;
}

// The file is whole or not there: it is written under another name first.
class NewFile {
 public:
  static absl::StatusOr<NewFile> Create(const std::string& path) {
    NewFile file;
    file.path_ = path;
    file.partial_ = path + ".partial";
    unlink(file.partial_.c_str());
    file.fd_ = UniqueFd(open(file.partial_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file.fd_.valid()) return ErrnoError(errno, file.partial_);
    return file;
  }
  NewFile(NewFile&&) = default;
  ~NewFile() {
    if (fd_.valid()) unlink(partial_.c_str());
  }
  absl::Status Write(absl::string_view bytes) {
    size_ += bytes.size();
    return WriteAll(fd_.get(), bytes);
  }
  absl::StatusOr<uint64_t> Finish() {
    if (fsync(fd_.get()) != 0) return ErrnoError(errno, path_);
    if (rename(partial_.c_str(), path_.c_str()) != 0) return ErrnoError(errno, path_);
    fd_ = UniqueFd();
    return size_;
  }

 private:
  NewFile() = default;
  UniqueFd fd_;
  std::string path_, partial_;
  uint64_t size_ = 0;
};

Json InfoJson(const FlightRecording& recording) {
  return {{"id", recording.id},
          {"trigger", recording.trigger},
          {"time_unix_ns", recording.time_unix_ns},
          {"from_unix_ns", recording.from_unix_ns},
          {"to_unix_ns", recording.to_unix_ns},
          {"pid", recording.pid.value_or(0)},
          {"comm", recording.comm},
          {"value", recording.value}};
}

// nullopt: not of our making.
std::optional<FlightRecording> ParseInfo(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  const auto word = [&](const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  const auto number = [&](const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_number_unsigned() ? found->get<uint64_t>() : uint64_t{0};
  };
  FlightRecording recording;
  recording.id = word("id");
  recording.trigger = word("trigger");
  recording.time_unix_ns = number("time_unix_ns");
  recording.from_unix_ns = number("from_unix_ns");
  recording.to_unix_ns = number("to_unix_ns");
  if (const uint64_t pid = number("pid"); pid != 0) recording.pid = static_cast<uint32_t>(pid);
  recording.comm = word("comm");
  recording.value = word("value");
  if (!IsId(recording.id) || recording.time_unix_ns == 0) return std::nullopt;
  return recording;
}

Json PauseJson(const Window& window, const WindowPause& pause) {
  Json json = {{"t_unix_ns", pause.requested_unix_ns},
               {"pid", window.processes[pause.process].pid},
               {"comm", window.processes[pause.process].comm},
               {"kind", pause.kind},
               {"reason", pause.reason},
               {"gc_reason", pause.gc_reason},
               {"induced", pause.induced},
               {"pause_ns", pause.pause_ns},
               {"suspend_ns", pause.suspend_ns},
               {"tid", pause.tid},
               {"thread", pause.thread_name}};
  if (pause.generation) json["generation"] = *pause.generation;
  if (pause.gc_index) json["gc_index"] = *pause.gc_index;
  json["culprits"] = Json::array();
  for (const Culprit& culprit : pause.culprits) {
    json["culprits"].push_back({{"method", culprit.method}, {"tid", culprit.tid}, {"delay_ns", culprit.delay_ns}});
  }
  return json;
}

// Bytes by process, type and method that allocates, as profiles of allocations end in them.
using AllocatedBytes = std::map<std::tuple<uint32_t, std::string, std::string>, uint64_t>;

void AddAllocations(const ProfileModel& model, AllocatedBytes& sums) {
  for (size_t row = 0; row < model.samples.size(); ++row) {
    const NodeIndex type = model.samples.stack[row];
    if (type == kRootNode) continue;
    const NodeIndex method = model.nodes[type].parent;
    const auto text = [&](NodeIndex node) {
      return node == kRootNode ? std::string() : std::string(model.text(model.frame_of(node).name));
    };
    sums[{model.threads[model.samples.thread[row]].pid, text(type), text(method)}] += model.samples.weight_of(row);
  }
}

Json AllocationsJson(const AllocatedBytes& sums) {
  std::vector<std::pair<uint64_t, const AllocatedBytes::key_type*>> order;
  for (const auto& [key, bytes] : sums) order.emplace_back(bytes, &key);
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  order.resize(std::min(order.size(), kMaxListed));
  Json json = Json::array();
  for (const auto& [bytes, key] : order) {
    const auto& [pid, type, method] = *key;
    json.push_back({{"pid", pid}, {"type", type}, {"method", method}, {"bytes", bytes}});
  }
  return json;
}

Json WaitsJson(const std::map<ProcessWaitSite, uint64_t>& sums) {
  std::vector<std::pair<uint64_t, const ProcessWaitSite*>> order;
  order.reserve(sums.size());
  for (const auto& [site, ns] : sums) order.emplace_back(ns, &site);
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  order.resize(std::min(order.size(), kMaxListed));
  Json json = Json::array();
  for (const auto& [ns, site] : order) {
    json.push_back({{"pid", site->pid}, {"kind", site->kind}, {"method", site->method}, {"ns", ns}});
    if (!site->waker.empty()) json.back()["waker"] = site->waker;
  }
  return json;
}

std::vector<std::string> FilesOf(absl::string_view id) { return {absl::StrCat(id, kProfile), absl::StrCat(id, kInfo)}; }

Json MethodJson(const Window& window, const WindowMethod& method) {
  return {{"pid", window.processes[method.process].pid},
          {"method", method.method},
          {"tier", method.tier},
          {"count", method.count},
          {"total_ns", method.total_ns}};
}

// Pauses or methods of windows, which outlive it: those with most time, in the order in which they came.
template <typename Entry>
class Costliest {
 public:
  void Add(const Window& window, const Entry& entry, uint64_t ns) { rows_.push_back({&window, &entry, ns}); }
  void LeaveOut(uint64_t count) { left_out_ += count; }
  void Write(Json& info, const std::string& key, Json (*json)(const Window&, const Entry&)) {
    Cut();
    info[key] = Json::array();
    for (const Row& row : rows_) info[key].push_back(json(*row.window, *row.entry));
    info[key + "_left_out"] = left_out_;
  }

 private:
  struct Row {
    const Window* window;
    const Entry* entry;
    uint64_t ns;
  };
  void Cut() {
    if (rows_.size() <= kMaxListed) return;
    LeaveOut(rows_.size() - kMaxListed);
    std::vector<size_t> order(rows_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return rows_[a].ns > rows_[b].ns; });
    order.resize(kMaxListed);
    std::sort(order.begin(), order.end());
    std::vector<Row> kept;
    kept.reserve(kMaxListed);
    for (const size_t i : order) kept.push_back(rows_[i]);
    rows_ = std::move(kept);
  }

  std::vector<Row> rows_;
  uint64_t left_out_ = 0;
};

// The pause that the recording was made for is always among them: for a suspend-delay it may be a short one.
void AddPauses(const Window& window, const FlightRecording& recording, Costliest<WindowPause>& pauses) {
  pauses.LeaveOut(window.pauses_left_out);
  for (const WindowPause& pause : window.pauses) {
    if (pause.process >= window.processes.size()) continue;
    const bool is_hit =
        pause.requested_unix_ns == recording.time_unix_ns && window.processes[pause.process].pid == recording.pid;
    pauses.Add(window, pause, is_hit ? std::numeric_limits<uint64_t>::max() : pause.pause_ns);
  }
}

void AddMethods(const Window& window, Costliest<WindowMethod>& methods) {
  methods.LeaveOut(window.methods_left_out);
  for (const WindowMethod& method : window.methods) {
    if (method.process < window.processes.size()) methods.Add(window, method, method.total_ns);
  }
}

}  // namespace

FlightRecorder::FlightRecorder(FlightRecorderOptions options) : options_(std::move(options)) {
  for (const Trigger& trigger : options_.triggers) {
    watches_.emplace_back(trigger);
    counters_.hits[trigger.text] = counters_.recorded[trigger.text] = counters_.limited[trigger.text] =
        counters_.failed[trigger.text] = 0;
  }
}

absl::StatusOr<std::unique_ptr<FlightRecorder>> FlightRecorder::OpenFolder(FlightRecorderOptions options) {
  auto recorder = std::unique_ptr<FlightRecorder>(new FlightRecorder(std::move(options)));
  if (!recorder->options_.directory.empty()) RETURN_IF_ERROR(recorder->FindFiles());
  return recorder;
}

std::string FlightRecorder::PathOf(absl::string_view id, absl::string_view extension) const {
  return absl::StrCat(options_.directory, "/", id, extension);
}

absl::Status FlightRecorder::FindFiles() {
  if (mkdir(options_.directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return WithHint(ErrnoError(errno, absl::StrCat("the folder of flight recordings, ", options_.directory)),
                    "give another one: --recordings DIR");
  }
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(options_.directory.c_str()), closedir);
  if (directory == nullptr) {
    return WithHint(ErrnoError(errno, absl::StrCat("the folder of flight recordings, ", options_.directory)),
                    "give another one: --recordings DIR");
  }
  while (const dirent* entry = readdir(directory.get())) {
    absl::string_view id(entry->d_name);
    if (!absl::ConsumeSuffix(&id, kInfo) || !IsId(id)) continue;
    const absl::StatusOr<std::string> text = ReadWholeFile(PathOf(id, kInfo), kMaxInfoBytes);
    std::optional<FlightRecording> recording = text.ok() ? ParseInfo(*text) : std::nullopt;
    if (!recording || recording->id != id) continue;
    recording->bytes = SizeOfFile(PathOf(id, kProfile)) + text->size();
    recording->files = FilesOf(id);
    recordings_.push_back(*std::move(recording));
  }
  RemoveLeftovers();
  std::sort(recordings_.begin(), recordings_.end(), [](const FlightRecording& a, const FlightRecording& b) {
    return a.time_unix_ns != b.time_unix_ns ? a.time_unix_ns < b.time_unix_ns : a.id < b.id;
  });
  for (const FlightRecording& recording : recordings_) {
    uint64_t& last = last_recorded_[recording.trigger];
    last = std::max(last, recording.time_unix_ns);
  }
  return absl::OkStatus();
}

// Files that a killed run did not finish.
void FlightRecorder::RemoveLeftovers() {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(options_.directory.c_str()), closedir);
  while (const dirent* entry = directory != nullptr ? readdir(directory.get()) : nullptr) {
    absl::string_view id(entry->d_name);
    const bool partial = absl::ConsumeSuffix(&id, ".partial");
    const bool info = absl::ConsumeSuffix(&id, kInfo);
    if ((!info && !absl::ConsumeSuffix(&id, kProfile)) || !IsId(id)) continue;
    // A recording has two files, and its info is written last. One that can't be read now may be readable another time.
    const bool alone = !info && access(PathOf(id, kInfo).c_str(), F_OK) != 0 && errno == ENOENT;
    if (partial || alone) unlink(absl::StrCat(options_.directory, "/", entry->d_name).c_str());
  }
}

void FlightRecorder::Take(const TriggerHit& hit, TriggerWatch& watch) {
  const std::string& trigger = watch.trigger().text;
  const std::lock_guard lock(mutex_);
  if (hit.is_new) ++counters_.hits[trigger];
  uint64_t& last = last_recorded_[trigger];
  // A wall clock that was set back must not keep a trigger shut.
  if (last != 0 && hit.end_unix_ns >= last && hit.end_unix_ns - last < options_.interval_ns) {
    if (hit.is_new) ++counters_.limited[trigger];
    return;
  }
  watch.Accept(hit);
  last = hit.end_unix_ns;
  FlightRecording recording;
  recording.trigger = trigger;
  recording.time_unix_ns = hit.begin_unix_ns;
  recording.from_unix_ns = hit.begin_unix_ns - std::min(hit.begin_unix_ns, options_.before_ns);
  recording.to_unix_ns = hit.end_unix_ns + options_.after_ns;
  recording.pid = hit.pid;
  recording.comm = hit.comm;
  recording.value = hit.value;
  recording.id =
      absl::StrCat(absl::FormatTime("%Y%m%dT%H%M%SZ", absl::FromUnixNanos(static_cast<int64_t>(hit.begin_unix_ns)),
                                    absl::UTCTimeZone()),
                   "-", next_number_++);
  waiting_.push_back(std::move(recording));
}

absl::Status FlightRecorder::Observe(std::shared_ptr<const Window> window) {
  if (watches_.empty() || options_.directory.empty()) return absl::OkStatus();
  windows_.push_back(window);
  for (TriggerWatch& watch : watches_) {
    const std::optional<TriggerHit> hit = watch.Observe(*window);
    if (hit) Take(*hit, watch);
  }
  absl::Status written;
  std::erase_if(waiting_, [&](FlightRecording& recording) {
    if (window->end_unix_ns < recording.to_unix_ns && window->clock_jump_ns == 0) return false;
    written.Update(Write(std::move(recording)));
    return true;
  });
  // Windows from before a jump of the clock have other times now, and nothing waits for them any more.
  if (window->clock_jump_ns != 0) windows_ = {window};
  // A later hit may be at this window's beginning.
  const uint64_t earliest = window->begin_unix_ns - std::min(window->begin_unix_ns, options_.before_ns);
  uint64_t needed = earliest;
  for (const FlightRecording& recording : waiting_) needed = std::min(needed, recording.from_unix_ns);
  while (windows_.size() > 1 && windows_.front()->end_unix_ns <= needed) windows_.pop_front();
  return written;
}

absl::Status FlightRecorder::Finish() {
  absl::Status written;
  for (FlightRecording& recording : std::exchange(waiting_, {})) written.Update(Write(std::move(recording)));
  return written;
}

struct FlightRecorder::Content {
  std::vector<ProfileModel> models;  // of the windows
  std::string info;                  // as .info.json has it
  uint64_t first_unix_ns = 0;
  uint64_t last_unix_ns = 0;
};

// The content of a recording beside its profile. It is gathered from the windows that it covers, and cut to these.
FlightRecorder::Content FlightRecorder::Gather(FlightRecording& recording) const {
  Content content;
  Json info = InfoJson(recording);
  Costliest<WindowPause> pauses;
  Costliest<WindowMethod> methods;
  AllocatedBytes allocated;
  std::map<ProcessWaitSite, uint64_t> waited;
  for (const std::shared_ptr<const Window>& window : windows_) {
    if (window->end_unix_ns <= recording.from_unix_ns || window->begin_unix_ns >= recording.to_unix_ns) continue;
    if (content.models.empty()) content.first_unix_ns = window->begin_unix_ns;
    content.last_unix_ns = window->end_unix_ns;
    content.models.push_back(window->cpu);
    AddAllocations(window->allocations, allocated);
    AddWaitSites(window->waits, waited);
    AddPauses(*window, recording, pauses);
    AddMethods(*window, methods);
  }
  pauses.Write(info, "pauses", &PauseJson);
  methods.Write(info, "methods", &MethodJson);
  recording.from_unix_ns = std::max(recording.from_unix_ns, content.first_unix_ns);
  recording.to_unix_ns = std::min(recording.to_unix_ns, content.last_unix_ns);
  info["allocations"] = AllocationsJson(allocated);
  info["waits"] = WaitsJson(waited);
  info["from_unix_ns"] = recording.from_unix_ns;
  info["to_unix_ns"] = recording.to_unix_ns;
  content.info = Dump(info);
  return content;
}

absl::StatusOr<ProfileModel> FlightRecorder::ModelOf(const FlightRecording& recording, const Content& content) {
  absl::StatusOr<ProfileModel> model = MergeProfiles(content.models);
  if (!model.ok()) return model;
  ProfileFilter part;
  if (recording.from_unix_ns > content.first_unix_ns) part.from_ns = recording.from_unix_ns - content.first_unix_ns;
  if (recording.to_unix_ns < content.last_unix_ns) part.to_ns = recording.to_unix_ns - content.first_unix_ns;
  if (part.empty() || model->samples.size() == 0) return model;
  return FilterProfile(*std::move(model), part);
}

absl::Status FlightRecorder::WriteFiles(FlightRecording& recording) {
  const Content content = Gather(recording);
  if (content.models.empty()) {
    return WithHint(absl::NotFoundError("no window of its time is in memory"),
                    "the service ended, or the clock was set, right after the event");
  }
  ASSIGN_OR_RETURN(const ProfileModel model, ModelOf(recording, content));
  ASSIGN_OR_RETURN(NewFile profile, NewFile::Create(PathOf(recording.id, kProfile)));
  RETURN_IF_ERROR(
      WriterOfFormat("json")->make({})->Write(model, [&](absl::string_view bytes) { return profile.Write(bytes); }));
  ASSIGN_OR_RETURN(const uint64_t profile_bytes, profile.Finish());
  // This comes last: a recording is there when its info is.
  ASSIGN_OR_RETURN(NewFile info_file, NewFile::Create(PathOf(recording.id, kInfo)));
  RETURN_IF_ERROR(info_file.Write(content.info));
  ASSIGN_OR_RETURN(const uint64_t info_bytes, info_file.Finish());
  recording.bytes = profile_bytes + info_bytes;
  recording.files = FilesOf(recording.id);
  return absl::OkStatus();
}

absl::Status FlightRecorder::Write(FlightRecording recording) {
  const absl::Status written = WriteFiles(recording);
  const std::lock_guard lock(mutex_);
  if (!written.ok()) {
    ++counters_.failed[recording.trigger];
    unlink(PathOf(recording.id, kProfile).c_str());
    return WithHint(Annotate(written, absl::StrCat("a flight recording could not be written to ", options_.directory)),
                    "make room there, or give another folder: --recordings DIR");
  }
  ++counters_.recorded[recording.trigger];
  recordings_.push_back(std::move(recording));
  MakeRoom();
  return absl::OkStatus();
}

void FlightRecorder::MakeRoom() {
  uint64_t bytes = 0;
  for (const FlightRecording& recording : recordings_) bytes += recording.bytes;
  while (recordings_.size() > 1 && (recordings_.size() > options_.max_files || bytes > options_.max_bytes)) {
    const FlightRecording& oldest = recordings_.front();
    unlink(PathOf(oldest.id, kInfo).c_str());
    unlink(PathOf(oldest.id, kProfile).c_str());
    bytes -= oldest.bytes;
    recordings_.erase(recordings_.begin());
  }
}

std::vector<FlightRecording> FlightRecorder::List() {
  const std::lock_guard lock(mutex_);
  return {recordings_.rbegin(), recordings_.rend()};
}

absl::StatusOr<ProfileModel> FlightRecorder::Open(const std::string& id) {
  {
    const std::lock_guard lock(mutex_);
    if (std::none_of(recordings_.begin(), recordings_.end(), [&](const auto& one) { return one.id == id; })) {
      return WithHint(absl::NotFoundError("there is no such flight recording"), "/api/recordings lists them");
    }
  }
  ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(PathOf(id, kProfile), kMaxProfileBytes));
  return ReadProfile(bytes);
}

FlightCounters FlightRecorder::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

}  // namespace clrsampler
