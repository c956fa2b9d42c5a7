#include "output/order.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "output/image_functions.h"
#include "status/status.h"

namespace clrsampler {

absl::Status OrderWriter::Write(const ProfileModel& model, const OutputSink& sink) const {
  std::vector<ProfileImage> images = ImagesOf(model);
  const bool managed_only = !images.empty() && images.end() == std::find_if(images.begin(), images.end(), [](auto& i) {
                                                 return i.kind == ImageKind::kElf;
                                               });
  images.erase(std::remove_if(images.begin(), images.end(), [](const auto& i) { return i.kind != ImageKind::kElf; }),
               images.end());
  if (managed_only) {
    return WithHint(absl::NotFoundError("only managed code was sampled, which no linker orders"),
                    "crossgen2 takes the order of managed methods from FILE.callchain.json");
  }
  ASSIGN_OR_RETURN(const ProfileImage* const chosen, ChooseImage(images, options_.module));
  const ProfileImage& image = *chosen;
  std::vector<ImageFunction> functions = image.functions;
  RETURN_IF_ERROR(SortFunctions(model, options_.function_order, functions));

  absl::flat_hash_set<absl::string_view> written;
  std::string lines;
  for (const ImageFunction& function : functions) {
    if (written.insert(function.symbol).second) absl::StrAppend(&lines, function.symbol, "\n");
  }
  const std::string others = ImageList(images, &image);
  const std::string what =
      absl::StrCat(ImageText(image, written.size()), ", ",
                   options_.function_order == FunctionOrder::kFirst ? "first seen first" : "hottest first");
  if (options_.note) {
    options_.note(absl::StrCat(what, others.empty() ? "" : absl::StrCat("; --module NAME takes another: ", others)));
  }
  return sink(absl::StrCat("# ", what, others.empty() ? "" : "; not here: ", others, "\n", lines));
}

}  // namespace clrsampler
