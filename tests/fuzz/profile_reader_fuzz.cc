// Any bytes as a profile. The first one says which reader: each of them, or the one that finds the format. A profile
// that is read obeys the model's rules, and each writer writes it with the same total.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "formats/profile/folded_reader.h"
#include "formats/profile/gzip.h"
#include "formats/profile/pprof_reader.h"
#include "formats/profile/profile_json_reader.h"
#include "formats/profile/profile_reader.h"
#include "formats/profile/speedscope_reader.h"
#include "output/profile_writer.h"
#include "status/status.h"

namespace {

using clrsampler::ProfileModel;

void Require(bool condition) {
  if (!condition) __builtin_trap();
}

void CheckRules(const ProfileModel& model) {
  const auto text = [&](clrsampler::StringIndex index) { Require(index < model.strings.size()); };
  Require(model.strings[0].empty());
  for (const clrsampler::ModelFrame& frame : model.frames) {
    Require(frame.name != 0);
    for (const clrsampler::StringIndex index :
         {frame.name, frame.system_name, frame.source, frame.module, frame.module_path, frame.build_id, frame.file_hash,
          frame.tier, frame.source_file}) {
      text(index);
    }
    Require(frame.line != 0 || (frame.column == 0 && frame.line_kind == clrsampler::LineKind::kNone));
  }
  for (const clrsampler::ModelSource& source : model.sources) {
    Require(source.file != 0);
    text(source.file);
    text(source.url);
    Require(source.text.size() <= clrsampler::kMaxSourceTextBytes);
  }
  for (const clrsampler::ModelThread& thread : model.threads) {
    text(thread.comm);
    text(thread.name);
    text(thread.container_id);
  }
  for (size_t i = 1; i < model.nodes.size(); ++i) {
    Require(model.nodes[i].parent < i);
    Require(model.nodes[i].frame < model.frames.size());
  }
  uint64_t total = 0;
  for (size_t row = 0; row < model.samples.size(); ++row) {
    const clrsampler::ModelSample sample = model.samples.at(row);
    Require(sample.thread < model.threads.size());
    Require(sample.stack < model.nodes.size());
    Require(sample.weight > 0);
    total += sample.weight;
  }
  Require(total == model.total_weight);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const absl::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const absl::StatusOr<ProfileModel> model = data[0] == 'f'   ? clrsampler::ReadFolded(bytes)
                                             : data[0] == 'j' ? clrsampler::ReadProfileJson(bytes)
                                             : data[0] == 'p' ? clrsampler::ReadPprof(bytes)
                                             : data[0] == 's' ? clrsampler::ReadSpeedscope(bytes)
                                                              : clrsampler::ReadProfile(bytes);
  if (!model.ok()) {
    Require(!model.status().message().empty());
    return 0;
  }
  CheckRules(*model);
  for (const clrsampler::WriterRow& row : clrsampler::WriterTable()) {
    std::string written;
    const absl::Status status = row.make({})->Write(*model, [&](absl::string_view piece) {
      written.append(piece.data(), piece.size());
      return absl::OkStatus();
    });
    if (!status.ok()) continue;  // pprof, of times that it can't hold
    // Speedscope's numbers are those of JavaScript; pages and pictures are not read.
    if (row.format == "speedscope" && model->total_weight >= uint64_t{1} << 53) continue;
    if (row.format != "folded" && row.format != "json" && row.format != "pprof" && row.format != "speedscope") continue;
    const absl::StatusOr<ProfileModel> again = clrsampler::ReadProfile(written);
    Require(again.ok() && again->total_weight == model->total_weight);
    if (row.format == "json") Require(again->sources.size() == model->sources.size());
  }
  return 0;
}
