// The text of a name where a method map refers to it: in the followed file.
#ifndef CLRSAMPLER_CLR_RECORDED_NAME_H_
#define CLRSAMPLER_CLR_RECORDED_NAME_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "clr/tailed_file.h"
#include "symbols/method_map.h"

namespace clrsampler {

// The name at the front of `bytes`. Where its end is not in sight, `ended` is false and all that is there is the name.
using CutRecordedName = absl::FunctionRef<absl::string_view(absl::string_view bytes, bool& ended)>;

// Reads until `cut` sees the end, at most `most_bytes` at once. nullopt: the file does not hold the name there any
// more. The name that is returned has the hash that the reference says, and so is the name that the parser saw.
std::optional<std::string> ReadRecordedName(TailedFile& file, MethodNameRef name, size_t most_bytes,
                                            CutRecordedName cut);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_RECORDED_NAME_H_
