// Output formats. A writer turns a profile into text or bytes; it knows no files and no options but its own.
//
// Writers are pure but for their sink, may be used from any thread, and stream: memory grows with the distinct stacks
// of the profile, not with the output. Weights add up to ProfileModel::total_weight in every format but those for build
// tools and those of code.
#ifndef CLRSAMPLER_OUTPUT_PROFILE_WRITER_H_
#define CLRSAMPLER_OUTPUT_PROFILE_WRITER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "formats/profile/profile_model.h"

namespace clrsampler {

// Takes pieces of the output in order.
using OutputSink = std::function<absl::Status(absl::string_view)>;

class ProfileWriter {
 public:
  virtual ~ProfileWriter() = default;
  virtual absl::Status Write(const ProfileModel& model, const OutputSink& sink) const = 0;
};

// How functions follow each other in what linkers read.
enum class FunctionOrder : uint8_t {
  kHot,    // by samples: what runs often lies together
  kFirst,  // by their first sample: what a start needs lies in the order in which it needs it
};

struct WriterOptions {
  bool annotate_source = false;  // behind each name the source it came from; folded text only
  // The image, as ChooseImage takes it, of formats that are for build tools (WriterRow::for_build_tools).
  std::string module = {};
  FunctionOrder function_order = FunctionOrder::kHot;
  // Told what a reader of the result would not see: which image was chosen, what had no name. May be empty.
  std::function<void(absl::string_view)> note = {};
};

struct WriterRow {
  absl::string_view format;                   // value of --format
  std::vector<absl::string_view> extensions;  // of files in this format, with the dot: ".pb.gz"
  absl::string_view next;                     // what people do with FILE: "open FILE in a browser"
  // Whether the format has more than counted stacks: threads, times and states of samples, which a recording keeps only
  // where a writer asks for them.
  bool takes_samples;
  bool of_one_image;     // holds functions of one image only
  bool for_build_tools;  // WriterOptions::module has a meaning
  bool needs_code;       // ProfileModel::code, which a recording keeps only where a writer or its user asks for it
  bool keeps_code;       // writes it where it is there
  std::unique_ptr<ProfileWriter> (*make)(const WriterOptions& options);
};
// One row for each format: the only place that lists them.
const std::vector<WriterRow>& WriterTable();

// nullptr: no such format.
const WriterRow* WriterOfFormat(absl::string_view format);
// By the longest extension that fits ("a.speedscope.json" is not ".json"), in any case; nullptr: none fits.
const WriterRow* WriterOfPath(absl::string_view path);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_PROFILE_WRITER_H_
