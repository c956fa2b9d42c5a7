// Any control group and environment, with a NUL between them. Properties: labels are of the few characters that tables
// and metrics can take, and outside of containers an environment names nothing.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"
#include "process/container.h"

namespace {

using namespace clrsampler;

void Require(bool holds) {
  if (!holds) __builtin_trap();
}

bool IsPlain(absl::string_view text, absl::string_view marks) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || marks.find(c) != absl::string_view::npos;
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(text.find('\0'), size);
  const absl::string_view cgroup = text.substr(0, end), environment = text.substr(std::min(end + 1, size));
  const Container container = ContainerOf(cgroup, environment);
  Require(IsPlain(container.name, "._-") && container.name.size() <= 253);
  Require(IsPlain(container.Label(), "._-@:"));
  if (container.cgroup.in_container()) {
    Require(!container.Label().empty() && container.cgroup.service.empty());
  } else {
    Require(container.name.empty() && container.Label() == container.cgroup.service);
  }
  return 0;
}
