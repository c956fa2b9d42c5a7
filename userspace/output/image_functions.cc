#include "output/image_functions.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "os/path_text.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr uint32_t kNone = UINT32_MAX;
constexpr absl::string_view kUnknownImage = "[unknown]";  // of formats that do not say it
constexpr absl::string_view kAotImage = "[aot]";
constexpr size_t kMostListed = 10;
constexpr size_t kMaxCommBytes = 15;  // the kernel keeps no more of a process's name

std::string OnOneLine(absl::string_view text) {
  std::string line(text);
  std::replace_if(
      line.begin(), line.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
  return line;
}

// A line of its own in a text file, and no comment.
bool FitsALine(absl::string_view symbol) {
  return !symbol.empty() && symbol.front() != '#' &&
         std::none_of(symbol.begin(), symbol.end(), [](unsigned char c) { return c <= ' ' || c == 0x7f; });
}

// A name for people that is the linker's as well. Names that carry our text are none ("[native: no symbols libc.so.6]",
// "libc.so.6!0x3d0b60", "malloc@plt"). Demangled names are none either ("Shop::Total", "Shop.Order.Total").
bool IsLinkerName(absl::string_view name, ModelFrameKind kind) {
  return name.find_first_of("[!@(") == absl::string_view::npos && !absl::StrContains(name, "::") &&
         (kind != ModelFrameKind::kAot || !absl::StrContains(name, "."));
}

struct Place {
  ImageKind kind;
  absl::string_view name, path;
};

class Collector {
 public:
  explicit Collector(const ProfileModel& model) : model_(model) {}

  std::vector<ProfileImage> Collect() {
    for (const ModelFrame& frame : model_.frames) {
      const absl::string_view path = model_.text(frame.module_path);
      if (frame.kind == ModelFrameKind::kR2r && !path.empty()) r2r_paths_.try_emplace(FileNameOf(path), path);
    }
    std::vector<uint32_t> function_of;
    for (const ModelFrame& frame : model_.frames) function_of.push_back(FunctionOf(frame));
    AddWeights(function_of);
    AddTimes(function_of);
    MarkPrograms();
    for (size_t i = 0; i < functions_.size(); ++i) {
      if (functions_[i].total == 0) continue;  // of a sample that is not there
      ProfileImage& image = images_[image_of_[i]];
      image.self += functions_[i].self;
      image.functions.push_back(functions_[i]);
    }
    images_.erase(
        std::remove_if(images_.begin(), images_.end(), [](const auto& image) { return image.functions.empty(); }),
        images_.end());
    std::stable_sort(images_.begin(), images_.end(), [](const ProfileImage& a, const ProfileImage& b) {
      return std::tuple(!a.is_program, ~a.self, a.name, a.path) < std::tuple(!b.is_program, ~b.self, b.name, b.path);
    });
    return std::move(images_);
  }

 private:
  // kNone: the frame is of no image, or has no name there.
  uint32_t FunctionOf(const ModelFrame& frame) {
    const std::optional<Place> place = PlaceOf(frame);
    if (!place) return kNone;
    absl::string_view symbol = model_.text(frame.system_name);
    if (symbol.empty() && place->kind == ImageKind::kElf && IsLinkerName(model_.text(frame.name), frame.kind)) {
      symbol = model_.text(frame.name);
    }
    const auto [image, new_image] = image_ids_.try_emplace(std::tuple(place->kind, place->name, place->path),
                                                           static_cast<uint32_t>(images_.size()));
    if (new_image) images_.push_back({place->kind, std::string(place->name), std::string(place->path), {}});
    if (!FitsALine(symbol)) {
      if (nameless_.insert(WithoutLine(frame)).second) ++images_[image->second].nameless;
      return kNone;
    }
    const auto [function, added] = function_ids_.try_emplace(std::tuple(image->second, symbol, frame.address),
                                                             static_cast<uint32_t>(functions_.size()));
    if (added) {
      functions_.push_back({symbol, frame.address, frame.size});
      image_of_.push_back(image->second);
    }
    return function->second;
  }

  std::optional<Place> PlaceOf(const ModelFrame& frame) {
    const absl::string_view module = model_.text(frame.module), path = model_.text(frame.module_path);
    switch (frame.kind) {
      case ModelFrameKind::kNative:
      case ModelFrameKind::kUnknown:
        if (absl::StartsWith(module, "[")) return std::nullopt;  // the vDSO
        if (path.empty() && module.empty()) return Place{ImageKind::kElf, kUnknownImage, ""};
        return Place{ImageKind::kElf, path.empty() ? module : FileNameOf(path), path};
      case ModelFrameKind::kAot:
        // Its module is an assembly, of which one program has many.
        return Place{ImageKind::kElf, path.empty() ? kAotImage : FileNameOf(path), path};
      case ModelFrameKind::kR2r:
        if (!path.empty()) return Place{ImageKind::kR2r, FileNameOf(path), path};
        if (module.empty()) return std::nullopt;
        {
          // Named by another source than the image.
          const absl::string_view name = *dll_names_.insert(absl::StrCat(module, ".dll")).first;
          const auto found = r2r_paths_.find(name);
          return Place{ImageKind::kR2r, name, found == r2r_paths_.end() ? "" : found->second};
        }
      case ModelFrameKind::kJit:
        // Stubs and dynamic methods have no name outside the process.
        if (frame.system_name == 0) return std::nullopt;
        return Place{ImageKind::kJit, kJitImage, ""};
      case ModelFrameKind::kKernel:
      case ModelFrameKind::kRole:
      case ModelFrameKind::kMark:
      case ModelFrameKind::kType:
      case ModelFrameKind::kInlined:
        break;
    }
    return std::nullopt;
  }

  void AddWeights(const std::vector<uint32_t>& function_of) {
    const std::vector<uint64_t> self = SelfWeights(model_);
    std::vector<NodeIndex> seen(functions_.size(), kRootNode);  // the last stack that had the function
    for (NodeIndex leaf = 1; leaf < model_.nodes.size(); ++leaf) {
      if (self[leaf] == 0) continue;
      if (const uint32_t function = function_of[model_.nodes[leaf].frame]; function != kNone) {
        functions_[function].self += self[leaf];
      }
      for (NodeIndex node = leaf; node != kRootNode; node = model_.nodes[node].parent) {
        const uint32_t function = function_of[model_.nodes[node].frame];
        if (function != kNone && std::exchange(seen[function], leaf) != leaf) functions_[function].total += self[leaf];
      }
    }
  }

  void AddTimes(const std::vector<uint32_t>& function_of) {
    if (model_.samples.time_ns.empty()) return;
    std::vector<uint64_t> first(model_.nodes.size(), kNoTime);
    for (size_t row = 0; row < model_.samples.size(); ++row) {
      uint64_t& time = first[model_.samples.stack[row]];
      time = std::min(time, model_.samples.time_ns[row]);
    }
    for (size_t node = model_.nodes.size(); node-- > 1;) {
      uint64_t& time = first[model_.nodes[node].parent];
      time = std::min(time, first[node]);
    }
    std::vector<uint32_t> depth(model_.nodes.size(), 0);
    for (size_t node = 1; node < model_.nodes.size(); ++node) {
      depth[node] = depth[model_.nodes[node].parent] + 1;
      const uint32_t index = function_of[model_.nodes[node].frame];
      if (index == kNone) continue;
      ImageFunction& function = functions_[index];
      if (std::tie(first[node], depth[node]) < std::tie(function.first_ns, function.first_depth)) {
        function.first_ns = first[node];
        function.first_depth = depth[node];
      }
    }
  }

  // A file is the program of the process that has its name, which may have been cut.
  void MarkPrograms() {
    std::map<absl::string_view, uint64_t> weights;
    for (size_t row = 0; row < model_.samples.size(); ++row) {
      weights[model_.text(model_.threads[model_.samples.thread[row]].comm)] += model_.samples.weight_of(row);
    }
    const auto most = std::max_element(weights.begin(), weights.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most == weights.end()) return;
    for (ProfileImage& image : images_) {
      const absl::string_view name = absl::StripSuffix(image.name, ".dll");
      image.is_program = !name.empty() && most->first == name.substr(0, kMaxCommBytes);
    }
  }

  const ProfileModel& model_;
  std::vector<ProfileImage> images_;
  std::vector<ImageFunction> functions_;
  std::vector<uint32_t> image_of_;
  absl::flat_hash_set<ModelFrame> nameless_;
  std::set<std::string> dll_names_;                                      // keys stay in their place
  absl::flat_hash_map<absl::string_view, absl::string_view> r2r_paths_;  // by file name
  absl::flat_hash_map<std::tuple<ImageKind, absl::string_view, absl::string_view>, uint32_t> image_ids_;
  absl::flat_hash_map<std::tuple<uint32_t, absl::string_view, uint64_t>, uint32_t> function_ids_;
};

}  // namespace

std::vector<ProfileImage> ImagesOf(const ProfileModel& model) { return Collector(model).Collect(); }

absl::Status SortFunctions(const ProfileModel& model, FunctionOrder order, std::vector<ImageFunction>& functions) {
  const auto heat = [](const ImageFunction& f) { return std::tuple(~f.self, ~f.total, f.symbol, f.address); };
  if (order == FunctionOrder::kHot) {
    std::sort(functions.begin(), functions.end(), [&](const auto& a, const auto& b) { return heat(a) < heat(b); });
    return absl::OkStatus();
  }
  if (model.samples.time_ns.empty() && model.samples.size() > 0) {
    return WithHint(absl::InvalidArgumentError("the samples of this profile have no times to tell which came first"),
                    "only the format .json keeps them: record -o FILE.json, or record --order first -o FILE.order");
  }
  std::sort(functions.begin(), functions.end(), [&](const ImageFunction& a, const ImageFunction& b) {
    return std::tuple(a.first_ns, a.first_depth, heat(a)) < std::tuple(b.first_ns, b.first_depth, heat(b));
  });
  return absl::OkStatus();
}

absl::StatusOr<const ProfileImage*> ChooseImage(const std::vector<ProfileImage>& images, absl::string_view module) {
  for (const ProfileImage& image : images) {
    if (module.empty() || module == image.name || module == image.path || absl::StrCat(module, ".dll") == image.name) {
      return &image;
    }
  }
  if (images.empty()) {
    return WithHint(absl::NotFoundError("no function of the profile has a name that a build tool would know"),
                    "give a recording as record -o FILE.json or FILE.pb.gz writes it; a linker's names are those of "
                    "native code, and of NativeAOT programs with their symbols");
  }
  return WithHint(absl::NotFoundError(absl::StrCat("no function of ", module, " was sampled")),
                  absl::StrCat("sampled were ", ImageList(images)));
}

std::string ImageList(const std::vector<ProfileImage>& images, const ProfileImage* except) {
  uint64_t whole = 0;
  absl::flat_hash_map<absl::string_view, int> names;
  for (const ProfileImage& image : images) {
    whole += image.self;
    ++names[image.name];
  }
  std::string list;
  size_t listed = 0;
  for (const ProfileImage& image : images) {
    if (&image == except) continue;
    if (++listed > kMostListed) return absl::StrCat(list, ", ...");
    const bool by_path = names[image.name] > 1 && !image.path.empty();
    absl::StrAppend(&list, list.empty() ? "" : ", ", OnOneLine(by_path ? image.path : image.name),
                    absl::StrFormat(" (%.1f %%)", 100.0 * static_cast<double>(image.self) /
                                                      static_cast<double>(std::max<uint64_t>(whole, 1))));
  }
  return list;
}

std::string ImageText(const ProfileImage& image, size_t functions) {
  return absl::StrCat(functions, functions == 1 ? " function of " : " functions of ",
                      OnOneLine(image.path.empty() ? image.name : image.path),
                      image.nameless == 0 ? "" : absl::StrCat(" (and ", image.nameless, " frames without a name)"));
}

}  // namespace clrsampler
