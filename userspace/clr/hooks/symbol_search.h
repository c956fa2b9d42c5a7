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

// One answer for each of `names`, in their order: the function that has the name, nullopt when there is none, or an
// error when what is there can't be trusted: several functions of that name, an address or size that the image's unwind
// table does not have, or code that other functions share (identical code folding).
//
// `debug`: the image's separate debug file, or null; the image's own table comes first. kNotFound: there is no table.
// kFailedPrecondition: the debug file belongs to another image.
using NamedFunction = absl::StatusOr<std::optional<FunctionIndex>>;
absl::StatusOr<std::vector<NamedFunction>> FindFunctionsByName(const ImageCode& code, const ElfImage* debug,
                                                               std::span<const absl::string_view> names);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_HOOKS_SYMBOL_SEARCH_H_
