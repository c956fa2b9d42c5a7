// Any symbol name. Properties: what is no mangled name comes back as it is, a name never becomes nothing, and no text
// is longer than the limit. A name that takes long is a finding as well: run with -timeout=1.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "symbols/demangle.h"

namespace {

using namespace clrsampler;

void Require(bool holds) {
  if (!holds) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view symbol(reinterpret_cast<const char*>(data), size);
  const std::string full = DemangleFull(symbol), brief = DemangleShort(symbol);
  const size_t most = std::max(size, kMaxDemangledBytes);
  Require(full.size() <= most && brief.size() <= most);
  Require(full.empty() == symbol.empty() && brief.empty() == symbol.empty());
  if (!absl::StartsWith(symbol, "_Z")) Require(absl::StartsWith(symbol, full) && absl::StartsWith(symbol, brief));
  return 0;
}
