#include "output/mip_from_samples.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/mip/mip_profile.h"
#include "formats/mip/mip_writer.h"
#include "output/image_functions.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr uint64_t kFirstRecord = 0x20;  // behind the header of a .mipraw file
constexpr uint64_t kRecordBytes = 8;     // of a function without blocks

// The number of samples in a weight. Profiles that count time get one for each 10 ms, so that they add up with those of
// recordings. It is at least 1: a function that was only seen waiting for a callee ran before.
uint64_t SamplesOf(WeightUnit unit, uint64_t weight) {
  const uint64_t of_sample = unit == WeightUnit::kNanoseconds    ? 10'000'000
                             : unit == WeightUnit::kMicroseconds ? 10'000
                                                                 : 1;
  return std::max<uint64_t>(weight / of_sample, 1);
}

}  // namespace

absl::Status MipFromSamplesWriter::Write(const ProfileModel& model, const OutputSink& sink) const {
  const std::vector<ProfileImage> images = ImagesOf(model);
  ASSIGN_OR_RETURN(const ProfileImage* const chosen, ChooseImage(images, options_.module));
  const ProfileImage& image = *chosen;
  std::vector<ImageFunction> functions = image.functions;
  RETURN_IF_ERROR(
      SortFunctions(model, model.samples.time_ns.empty() ? FunctionOrder::kHot : FunctionOrder::kFirst, functions));

  MipProfileBuilder builder(kMipCounts, MipModuleHash(image.name));
  for (size_t i = 0; i < functions.size(); ++i) {
    const ImageFunction& function = functions[i];
    RETURN_IF_ERROR(builder.Add({.name = function.symbol,
                                 .raw_offset = kFirstRecord + kRecordBytes * i,
                                 .start_offset = static_cast<int64_t>(function.address),
                                 .size = function.size,
                                 .merge_count = 1,
                                 .call_count = SamplesOf(model.meta.unit, function.self),
                                 .timestamp_sum = i + 1}));
  }
  // Only programs at a fixed address of their own choice lie beyond 2 GiB.
  const bool wide = std::any_of(functions.begin(), functions.end(), [](const ImageFunction& function) {
    return function.address > std::numeric_limits<int32_t>::max();
  });
  RETURN_IF_ERROR(WriteMip(std::move(builder).Build(), wide ? MipLayout::kLlvm : MipLayout::kDocumented, sink));
  if (options_.note) {
    const std::string others = ImageList(images, &image);
    options_.note(absl::StrCat(ImageText(image, functions.size()),
                               others.empty() ? "" : absl::StrCat("; --module NAME takes another: ", others)));
  }
  return absl::OkStatus();
}

}  // namespace clrsampler
