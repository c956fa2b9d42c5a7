// Whether a file from a server is the one that was asked for. Pure.
#ifndef CLRSAMPLER_SYMBOL_SERVER_SYMBOL_CHECK_H_
#define CLRSAMPLER_SYMBOL_SERVER_SYMBOL_CHECK_H_

#include <cstddef>
#include <span>

#include "absl/status/status.h"
#include "symbol_server/symbol_keys.h"

namespace clrsampler {

// FailedPrecondition: the file of another build. DataLoss: no such file at all. NotFound: the right build, but without
// symbols: a server that was asked for the image by its name has the stripped one.
// An r2rmap's signature does not prove its rows; clr/r2r_map_file does that against the image.
absl::Status CheckSymbolFile(const SymbolFileKey& key, std::span<const std::byte> bytes);

}  // namespace clrsampler

#endif  // CLRSAMPLER_SYMBOL_SERVER_SYMBOL_CHECK_H_
