// The functions of a profile by the image that they are in: what orders and profiles for build tools are made of.
//
// An image is what a build tool makes: an ELF file, an image of precompiled managed code; all code that was compiled in
// the process stands as "[jit]". The kernel, and frames that stand for no function, are in none.
#ifndef CLRSAMPLER_OUTPUT_IMAGE_FUNCTIONS_H_
#define CLRSAMPLER_OUTPUT_IMAGE_FUNCTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "formats/profile/profile_model.h"
#include "output/profile_writer.h"

namespace clrsampler {

enum class ImageKind : uint8_t { kElf, kR2r, kJit };

inline constexpr absl::string_view kJitImage = "[jit]";

struct ImageFunction {
  absl::string_view symbol;  // the linker's, or MethodSymbol; borrowed from the model
  uint64_t address = 0;      // as in ModelFrame
  uint32_t size = 0;
  uint64_t self = 0;            // weight of the samples that it ran in
  uint64_t total = 0;           // and of those in which it waited for what it had called; recursion counts once
  uint64_t first_ns = kNoTime;  // time of the first sample that has it
  uint32_t first_depth = 0;     // how many frames are outside it there
};

struct ProfileImage {
  ImageKind kind = ImageKind::kElf;
  std::string name;  // file name: "libfoo.so", "Shop.dll"
  std::string path;  // "": not known
  std::vector<ImageFunction> functions;
  uint64_t self = 0;        // of its functions
  uint64_t nameless = 0;    // frames that are left out: they have no name that a build tool knows
  bool is_program = false;  // of the process with most samples
};

// Those with functions: the program first, then by samples. Borrows the model.
std::vector<ProfileImage> ImagesOf(const ProfileModel& model);

// In place. kFirst: by the first sample that has a function, of one stack the caller first. kHot: by own samples, then
// by those of what it called. InvalidArgument: kFirst, and the profile has no times.
absl::Status SortFunctions(const ProfileModel& model, FunctionOrder order, std::vector<ImageFunction>& functions);

// The image that `module` names (file name, path, or name of an assembly), of several the one with most samples; for ""
// the first one. `images` are those to choose from. NotFound: none; the hint lists what there is.
absl::StatusOr<const ProfileImage*> ChooseImage(const std::vector<ProfileImage>& images, absl::string_view module);

// "app (94.5 %), libc.so.6 (5.5 %)": the first ones with their shares of all samples in images; by path where two have
// one name. On one line, whatever names hold.
std::string ImageList(const std::vector<ProfileImage>& images, const ProfileImage* except = nullptr);
// "3 functions of /opt/app", the same; with those that are left out.
std::string ImageText(const ProfileImage& image, size_t functions);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_IMAGE_FUNCTIONS_H_
