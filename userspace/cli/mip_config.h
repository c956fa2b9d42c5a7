// The options of the commands of `clrsampler mip`, and a function for each.
#ifndef CLRSAMPLER_CLI_MIP_CONFIG_H_
#define CLRSAMPLER_CLI_MIP_CONFIG_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace clrsampler {

struct MipConfig {
  std::string profile;
  std::string input;                // of create and from-yaml
  std::vector<std::string> inputs;  // of merge
  std::string output;               // empty: standard output
  std::optional<std::string> regex;
  std::string debug;   // empty: no source lines
  std::string layout;  // empty: that of the file that is changed
  bool json = false;
  bool strict = false;
  bool force = false;
  bool lines = false;
  bool paths = false;
};

// Those in mip_edit.cc write a profile.
absl::Status CreateMip(const MipConfig& config);
absl::Status MergeIntoMip(const MipConfig& config);
absl::Status MipFromYaml(const MipConfig& config);

// Those in mip_show.cc print one.
absl::Status ShowMip(const MipConfig& config);
absl::Status PrintMipOrder(const MipConfig& config);
absl::Status PrintMipCovered(const MipConfig& config);
absl::Status PrintMipInfo(const MipConfig& config);
absl::Status MipToYaml(const MipConfig& config);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_MIP_CONFIG_H_
