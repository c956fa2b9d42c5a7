#include "clr/hooks/symbol_search.h"

#include <elf.h>

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "status/status.h"

namespace clrsampler {
namespace {

bool IsFunction(const ElfSymbol& symbol) { return symbol.type == STT_FUNC && symbol.section != SHN_UNDEF; }

}  // namespace

absl::StatusOr<ImageSymbols> SymbolsOf(const ElfImage& image, const ElfImage* debug) {
  constexpr absl::string_view kHint = "put the debug file that was written together with the image beside it";
  ImageSymbols symbols;
  if (const auto own = image.symtab()) {
    symbols = {*own, true};
  } else {
    const auto table = debug == nullptr ? std::nullopt : debug->symtab();
    if (!table) return absl::NotFoundError("there are no symbols");
    if (debug->machine() != image.machine()) {
      return WithHint(absl::FailedPreconditionError("the debug file is of another machine"), kHint);
    }
    const std::span<const std::byte> a = image.build_id(), b = debug->build_id();
    const bool known = !a.empty() && !b.empty();
    if (known && !std::equal(a.begin(), a.end(), b.begin(), b.end())) {
      return WithHint(absl::FailedPreconditionError("the debug file is of another build"), kHint);
    }
    symbols = {*table, known};
  }
  if (symbols.table.left_out > 0) {  // a NativeAOT program has 120,000
    return absl::UnimplementedError(
        absl::StrCat("there are ", symbols.table.size() + symbols.table.left_out, " symbols"));
  }
  return symbols;
}

std::vector<NamedFunction> FindFunctionsByName(const ImageCode& code, const ElfSymbolTable& symbols,
                                               std::span<const absl::string_view> names) {
  absl::flat_hash_map<absl::string_view, size_t> wanted;
  size_t longest = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    wanted.emplace(names[i], i);
    longest = std::max(longest, names[i].size());
  }
  std::vector<NamedFunction> result(names.size(), std::optional<FunctionIndex>());
  for (size_t i = 0; i < symbols.size(); ++i) {
    const ElfSymbol symbol = symbols.At(i);
    if (!IsFunction(symbol)) continue;
    const absl::string_view name = symbols.NamePrefix(symbol.name, longest + 1);
    const auto asked = wanted.find(name);
    if (asked == wanted.end()) continue;
    NamedFunction& answer = result[asked->second];
    if (!answer.ok()) continue;
    const auto function = code.functions().StartingAt(symbol.address);
    if (*answer) {
      if (*answer != function) answer = absl::FailedPreconditionError(absl::StrCat("two functions are named ", name));
    } else if (!function) {
      answer = absl::DataLossError(absl::StrCat("no function of the unwind table begins at ",
                                                AddressText(symbol.address), ", where the symbol ", name, " is"));
    } else if (symbol.size != 0 && symbol.size != code.Code(*function).size()) {
      answer = absl::DataLossError(absl::StrCat("the symbol ", name, " has ", symbol.size,
                                                " bytes, but its function in the unwind table ",
                                                code.Code(*function).size()));
    } else if (code.IsTooLarge(*function)) {
      answer = absl::UnimplementedError(absl::StrCat("the function ", name, " has ", code.Code(*function).size(),
                                                     " bytes, more than any of a runtime"));
    } else {
      answer = function;
    }
  }
  absl::flat_hash_map<uint64_t, size_t> at;
  for (size_t i = 0; i < names.size(); ++i) {
    if (!result[i].ok() || !*result[i]) continue;
    const auto [other, added] = at.emplace(code.Start(**result[i]).value, i);
    if (added) continue;
    for (const size_t shared : {i, other->second}) {
      result[shared] =
          absl::FailedPreconditionError(absl::StrCat(names[i], " and ", names[other->second], " are one function"));
    }
  }
  for (size_t i = 0; i < symbols.size() && !at.empty(); ++i) {
    const ElfSymbol symbol = symbols.At(i);
    if (!IsFunction(symbol)) continue;
    const auto found = at.find(symbol.address.value);
    if (found == at.end() || !result[found->second].ok()) continue;
    const absl::string_view name = symbols.NamePrefix(symbol.name, longest + 1);
    const absl::string_view own = names[found->second];
    // "NAME.localalias" is what GCC calls a function for itself.
    if (name.empty() || name == own || absl::StartsWith(name, absl::StrCat(own, "."))) continue;
    result[found->second] =
        absl::FailedPreconditionError(absl::StrCat("the code of ", own, " is shared with other functions"));
    at.erase(found);
  }
  return result;
}

}  // namespace clrsampler
