// The text of a profile in our JSON format -> its tables, within limits. Whether an index is one of its table is
// checked by profile_json_reader.cc.
#ifndef CLRSAMPLER_FORMATS_PROFILE_PROFILE_JSON_EVENTS_H_
#define CLRSAMPLER_FORMATS_PROFILE_PROFILE_JSON_EVENTS_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "formats/profile/json_tree_builder.h"
#include "formats/profile/profile_json_tables.h"
#include "status/status.h"

namespace clrsampler {

inline absl::Status NotOurProfile(absl::string_view why) {
  return WithHint(absl::DataLossError(absl::StrCat("not a profile of clrsampler: ", why)),
                  "was the file written to its end, and copied as a whole?");
}

// Takes the parser's events (nlohmann's SAX interface) and fills the tables.
//
//   depth 1: {"frames": depth 2: {"name": depth 3: [...]}, "strings": depth 2: [...]}
class ProfileJsonEvents {
 public:
  ProfileJsonEvents(FileTables& tables, ProfileModelBuilder& builder) : tables_(tables), builder_(builder) {}

  absl::Status status() const { return status_; }

  bool null() { return number_null(); }
  bool boolean(bool value) {
    if (account_.open()) return AddToAccount(value);
    if (depth_ == 2 && section_ == "meta" && key_ == "whole_host") tables_.meta.whole_host = value;
    return narrow_ == nullptr && wide_ == nullptr ? true : Fail(Place("no number"));
  }
  bool number_integer(int64_t value) {
    if (account_.open()) return AddToAccount(value);
    return narrow_ == nullptr && wide_ == nullptr ? true : Fail(Place("a negative number"));
  }
  bool number_float(double value, const std::string&) {
    if (account_.open()) return AddToAccount(value);
    return narrow_ == nullptr && wide_ == nullptr ? true : Fail(Place("no whole number"));
  }
  bool number_unsigned(uint64_t value) {
    if ((narrow_ != nullptr && narrow_->size() >= kMaxRows) || (wide_ != nullptr && wide_->size() >= kMaxRows)) {
      return Fail(Place(absl::StrCat("more than ", kMaxRows, " entries")));
    }
    if (narrow_ != nullptr) {
      if (value > std::numeric_limits<uint32_t>::max()) return Fail(Place(absl::StrCat(value, " is too large")));
      narrow_->push_back(static_cast<uint32_t>(value));
      return true;
    }
    if (wide_ != nullptr) {
      wide_->push_back(value);
      return true;
    }
    if (account_.open()) return AddToAccount(value);
    if (depth_ == 1 && section_ == "version") tables_.version = value;
    if (depth_ == 2 && section_ == "meta") {
      if (key_ == "period_ns") tables_.meta.period_ns = value;
      if (key_ == "start_unix_ns") tables_.meta.start_unix_ns = value;
      if (key_ == "start_monotonic_ns") tables_.meta.start_monotonic_ns = value;
      if (key_ == "duration_ns") tables_.meta.duration_ns = value;
    }
    return true;
  }
  bool string(std::string& value) {
    if (account_.open()) return AddToAccount(value);
    if (narrow_ != nullptr || wide_ != nullptr) return Fail(Place("no number"));
    if (depth_ == 1 && section_ == "format") tables_.format = value;
    if (depth_ == 2 && in_list_) return AddToList(value);
    if (depth_ == 3 && section_ == "sources" && key_ == "text") return AddSourceText(value);
    if (depth_ == 3 && section_ == "code" && key_ == "bytes") return AddCodeBytes(value);
    if (depth_ == 3 && section_ == "links") return AddLink(value);
    if (depth_ == 4 && InLabels()) SetLabel(value);
    if (depth_ == 2 && section_ == "meta") return SetMeta(value);
    return true;
  }
  bool binary(nlohmann::json::binary_t&) { return true; }

  bool start_object(size_t) {
    if (!Enter()) return false;
    if (account_.open() || (depth_ == 3 && section_ == "meta" && key_ == "account")) {
      return OpenInAccount(nlohmann::ordered_json::object());
    }
    return true;
  }
  bool key(std::string& key) {
    if (account_.open()) {
      account_.Key(key);
      return true;
    }
    if (depth_ == 1) section_ = key;
    if (depth_ == 2) key_ = key;
    if (depth_ == 3 && InLabels()) return AddLabeled(key);
    if (depth_ == 4) label_ = key;
    return true;
  }
  bool end_object() { return Leave(); }
  bool start_array(size_t) {
    if (narrow_ != nullptr || wide_ != nullptr) return Fail(Place("no number"));
    if (!Enter()) return false;
    if (account_.open()) return OpenInAccount(nlohmann::ordered_json::array());
    if (depth_ == 2) {
      in_list_ = true;
    } else if (depth_ == 3 && !in_list_) {
      OpenColumn();
    }
    return true;
  }
  bool end_array() {
    narrow_ = nullptr;
    wide_ = nullptr;
    if (depth_ == 2) in_list_ = false;
    return Leave();
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) {
    return Fail(absl::StrCat("the JSON text is damaged at byte ", position));
  }

 private:
  static constexpr size_t kMaxDepth = 64;
  static constexpr size_t kMaxRows = std::max(kReadLimits.samples, kReadLimits.nodes);  // of a table
  static constexpr size_t kMaxLabeled = 1 << 16;  // processes; a host may have four million, and runs some thousands
  // The account of a host has some ten values for each process, in objects of a few dozen keys.
  static constexpr JsonTreeBuilder::Limits kAccountLimits = {.values = 1'000'000, .keys = 256, .key_bytes = 128};

  bool Fail(absl::string_view why) {
    status_ = NotOurProfile(why);
    return false;
  }
  std::string Place(absl::string_view what) const { return absl::StrCat(what, " in ", section_, ".", key_); }

  bool Enter() { return ++depth_ <= kMaxDepth || Fail(absl::StrCat("values are nested ", depth_, " deep")); }
  bool Leave() {
    if (account_.open()) account_.Close();
    --depth_;
    if (depth_ == 2 && !account_.open() && section_ == "meta" && key_ == "account" && account_.value().is_object()) {
      // As --stats writes it.
      tables_.meta.account_json =
          account_.value().dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
    }
    return true;
  }

  bool number_null() {
    if (account_.open()) return AddToAccount(nullptr);
    if (wide_ == &tables_.time_ns) {
      if (wide_->size() >= kMaxRows) return Fail(Place(absl::StrCat("more than ", kMaxRows, " entries")));
      wide_->push_back(kNoTime);
      return true;
    }
    return narrow_ == nullptr && wide_ == nullptr ? true : Fail(Place("no number"));
  }

  bool AddToAccount(nlohmann::ordered_json value) {
    account_.Add(std::move(value));
    return AccountFits();
  }
  bool OpenInAccount(nlohmann::ordered_json container) {
    account_.Open(std::move(container));
    return AccountFits();
  }
  bool AccountFits() { return !account_.full() || Fail("its account is larger than that of any run"); }

  bool AddToList(const std::string& text) {
    if (section_ == "strings") {
      if (tables_.strings.size() >= kMaxRows) return Fail("it has too many strings");
      tables_.strings.push_back(builder_.String(text));
      return builder_.ok();
    }
    // No more words than a table of this version could have.
    if (section_ == "frame_kinds" && tables_.frame_kinds.size() < 256) tables_.frame_kinds.push_back(text);
    if (section_ == "event_kinds" && tables_.event_kinds.size() < 256) tables_.event_kinds.push_back(text);
    if (section_ == "line_kinds" && tables_.line_kinds.size() < 256) tables_.line_kinds.push_back(text);
    if (section_ == "code_machines" && tables_.code_machines.size() < 256) tables_.code_machines.push_back(text);
    if (section_ == "sample_states" && tables_.sample_states.size() < 256) tables_.sample_states.push_back(text);
    return true;
  }

  bool AddSourceText(std::string& text) {
    if (text.size() > kMaxSourceTextBytes || text.size() > kMaxSourceTextsBytes - source_bytes_) {
      return Fail(Place("more than 4 MiB of one text, or 64 MiB of all"));
    }
    if (tables_.texts.size() >= kReadLimits.frames) return Fail(Place("too many entries"));
    source_bytes_ += text.size();
    tables_.texts.push_back(std::move(text));
    return true;
  }

  bool AddCodeBytes(absl::string_view text) {
    std::string bytes;
    if (text.size() > 4 * (kMaxCodeBodyBytes / 3 + 1) || !absl::Base64Unescape(text, &bytes)) {
      return Fail(Place("no base64 of at most 1 MiB"));
    }
    if (bytes.size() > kMaxCodeBodiesBytes - code_bytes_) return Fail(Place("more than 64 MiB"));
    if (tables_.code_bytes.size() >= kReadLimits.frames) return Fail(Place("too many entries"));
    code_bytes_ += bytes.size();
    tables_.code_bytes.push_back(std::move(bytes));
    return true;
  }

  // The ids of a row come in two columns.
  bool AddLink(absl::string_view text) {
    const bool trace = key_ == "trace_id";
    if (!trace && key_ != "span_id") return true;
    size_t& row = trace ? tables_.trace_rows : tables_.span_rows;
    if (row >= kReadLimits.frames) return Fail(Place("too many entries"));
    if (row == tables_.links.size()) tables_.links.emplace_back();
    TraceLink& link = tables_.links[row++];
    trace ? link.SetTrace(text) : link.SetSpan(text);
    return true;
  }

  bool InLabels() const { return section_ == "meta" && key_ == "labels"; }
  // The key of a process is its pid.
  bool AddLabeled(absl::string_view pid) {
    labeled_ = nullptr;
    label_.clear();
    uint32_t number = 0;
    if (!absl::SimpleAtoi(pid, &number)) return true;
    if (tables_.meta.labels.size() >= kMaxLabeled) return Fail(Place("too many processes"));
    labeled_ = &tables_.meta.labels[number];
    return true;
  }
  void SetLabel(absl::string_view value) {
    const std::optional<LabelKey> known = LabelKeyOf(label_);
    if (labeled_ != nullptr && known) labeled_->Set(*known, value);
  }

  bool SetMeta(const std::string& text) {
    if (text.size() > kMaxModelStringBytes) return Fail(Place("more than 1 MiB"));
    if (key_ == "host") tables_.meta.host = text;
    if (key_ == "command") tables_.meta.command = text;
    if (key_ == "creator") tables_.meta.creator = text;
    if (key_ == "view") {
      const std::optional<ProfileView> view = ProfileViewOf(text);
      if (!view) return Fail("its view is of a kind that this version does not know");
      tables_.meta.view = *view;
    }
    if (key_ == "unit") {
      const std::optional<WeightUnit> unit = WeightUnitOf(text);
      if (!unit) return Fail("its weights have a unit that this version does not know");
      tables_.meta.unit = *unit;
    }
    return true;
  }

  void OpenColumn() {
    for (const WideColumn& column : kWideColumns) {
      if (column.section == section_ && column.name == key_) wide_ = &(tables_.*column.values);
    }
    if (section_ == "meta" && key_ == "pids") narrow_ = &tables_.meta.pids;
    if (section_ == "meta" && key_ == "recorded_ns") wide_ = &tables_.recorded_ns;
    for (const NarrowColumn& column : kNarrowColumns) {
      if (column.section == section_ && column.name == key_) narrow_ = &(tables_.*column.values);
    }
  }

  FileTables& tables_;
  ProfileModelBuilder& builder_;
  absl::Status status_;
  size_t depth_ = 0;
  std::string section_;  // key at depth 1
  std::string key_;      // at depth 2
  std::string label_;    // at depth 4
  bool in_list_ = false;
  ProcessLabels* labeled_ = nullptr;         // whose labels are being read
  size_t source_bytes_ = 0;                  // of all texts of files
  size_t code_bytes_ = 0;                    // of all bodies
  std::vector<uint32_t>* narrow_ = nullptr;  // the column that is being read
  std::vector<uint64_t>* wide_ = nullptr;
  JsonTreeBuilder account_{kAccountLimits};
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_PROFILE_PROFILE_JSON_EVENTS_H_
