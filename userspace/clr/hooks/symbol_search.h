// The functions to probe by their names in a symbol table: NativeAOT programs with their debug file, and runtimes that
// somebody built and did not strip.
#ifndef CLRSAMPLER_CLR_HOOKS_SYMBOL_SEARCH_H_
#define CLRSAMPLER_CLR_HOOKS_SYMBOL_SEARCH_H_

#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "clr/hooks/image_code.h"

namespace clrsampler {

// The image's own table, else that of its separate debug file, which may be null.
struct ImageSymbols {
  ElfSymbolTable table;
  bool same_build = false;  // for sure: the image's own, or both have the same build-id
};
// kNotFound: there is none. kFailedPrecondition: the debug file belongs to another image. kUnimplemented: there are
// more symbols than any program has.
absl::StatusOr<ImageSymbols> SymbolsOf(const ElfImage& image, const ElfImage* debug);

// One answer for each of `names`, in their order: the function that has the name, nullopt when there is none, or an
// error when it can't be trusted. Such are several functions of that name, an address or size that the image's unwind
// table does not have, or code that other functions share (identical code folding). Such is also a function that is
// larger than any of a runtime.
using NamedFunction = absl::StatusOr<std::optional<FunctionIndex>>;
std::vector<NamedFunction> FindFunctionsByName(const ImageCode& code, const ElfSymbolTable& symbols,
                                               std::span<const absl::string_view> names);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_HOOKS_SYMBOL_SEARCH_H_
