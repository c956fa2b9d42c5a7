// Any bytes as a runtime's image. Properties: every name is of letters and few signs, and is given once to a start.
// Every function with a name begins where an entry of the unwind table does, in executable memory. The tables lead to
// at least as many functions as have names by them.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/strings/ascii.h"
#include "formats/elf/eh_frame.h"
#include "formats/runtime/runtime_functions.h"

namespace {

using namespace clrsampler;

void Require(bool holds) {
  if (!holds) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto image = ElfImage::Parse(bytes);
  if (!image.ok()) return 0;
  const auto functions = RuntimeFunctions::Read(*image);
  if (!functions.ok()) {
    Require(!functions.status().message().empty());
    return 0;
  }
  const auto unwind = EhFrameTable::Parse(*image);
  Require(unwind.ok());
  size_t led_to = 0;
  for (const RuntimeTable& table : functions->tables()) led_to += table.functions;
  size_t by_code = 0;
  for (const RuntimeFunction& one : functions->all()) {
    by_code += one.table == RuntimeTableKind::kStartup || one.table == RuntimeTableKind::kAssembly ? 1 : 0;
  }
  Require(functions->all().size() - by_code <= led_to);
  for (size_t i = 0; i < functions->all().size(); ++i) {
    const RuntimeFunction& one = functions->all()[i];
    if (i > 0) Require(functions->all()[i - 1].start < one.start);
    Require(functions->StartingAt(one.start) == &one);
    const bool method = one.table == RuntimeTableKind::kFCalls, helpers = one.table == RuntimeTableKind::kJitHelpers;
    Require(one.name.size() >= 3 && one.name.size() < (method || helpers ? 400 : 128));
    const std::string_view signs = method ? "_.`<>" : helpers ? "_|" : "_";
    for (const char c : one.name) {
      Require(absl::ascii_isalnum(static_cast<unsigned char>(c)) || signs.find(c) != std::string_view::npos);
    }
    const auto bounds = unwind->Find(one.start);
    Require(bounds && bounds->start == one.start && bounds->end_known && image->IsExecutable(one.start));
  }
  return 0;
}
