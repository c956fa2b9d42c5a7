#include "formats/runtime/runtime_functions.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "formats/byte_reader.h"
#include "formats/elf/eh_frame.h"
#include "formats/elf/elf_exports.h"
#include "formats/elf/relative_relocations.h"
#include "formats/runtime/assembly_functions.h"
#include "formats/runtime/jit_helper_tables.h"
#include "formats/runtime/startup_helpers.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr uint64_t kWordBytes = sizeof(uint64_t), kPairBytes = 2 * kWordBytes;
// The smallest table known has 36 pairs. By chance there is one such pair, and no second behind it, in each of 8 to 11.
constexpr size_t kMinPairs = 24;
// There are 369 QCalls in 10.0.14, the most. More than this is no table of entry points.
constexpr size_t kMaxPairs = 4096;
// The longest known is 70.
constexpr size_t kMinIdentifierBytes = 3, kMaxNameBytes = 127;
// The fewest classes of FCalls are 28, in 11.0.0. The most functions are 383, in 8.0.30.
constexpr size_t kMinClasses = 16;
constexpr uint64_t kClassBytes = 3 * kWordBytes;
constexpr uint64_t kFCallEndFlag = 1, kFCallSignatureFlag = 2;
constexpr uint64_t kFCallEnd = 0xffffffffff000001;  // and no dynamic id
constexpr absl::string_view kHelperPrefix = "CORINFO_HELP_";
// A name that is made of more would say little.
constexpr size_t kMaxHelpersOfOne = 3;
constexpr absl::string_view kBulkMove = "System.Buffer.BulkMoveWithWriteBarrierInternal";
constexpr uint64_t kMaxBulkMoveBytes = 48;  // length of a function that only jumps; 29 in 10.0.14
// The most entries that are looked at, also those of data that only looks like a class. 8.0.30 needs 2,000.
constexpr size_t kMaxFCallSteps = 200'000;

// The code of each is looked at. libcoreclr.so has 17,000, a single-file host 24,000.
constexpr size_t kMaxFunctions = 400'000;

class Reader {
 public:
  Reader(const ElfImage& image, const EhFrameTable& unwind, const RelativeRelocations& relocations)
      : image_(image), unwind_(unwind), relocations_(relocations) {}

  void Read() {
    AddEntryPoints();
    AddFCalls();
    AddJitHelpers();
    for (const AssemblyFunction& one : FindAssemblyFunctions(image_, unwind_)) {
      Prove(one.start, one.name, RuntimeTableKind::kAssembly);
    }
    absl::c_sort(tables_, [](const RuntimeTable& a, const RuntimeTable& b) {
      return std::pair(a.kind, a.at.value) < std::pair(b.kind, b.at.value);
    });
  }

  // Names in no doubt, by address.
  std::vector<RuntimeFunction> TakeFunctions() {
    absl::flat_hash_map<uint64_t, size_t> slots;  // that lead to a function
    for (const RelativeRelocation& row : relocations_.all()) {
      if (claims_.contains(row.target.value)) ++slots[row.target.value];
    }
    std::vector<RuntimeFunction> functions;
    for (auto& [start, claim] : claims_) {
      const auto proven = proven_.find(start);
      if (proven != proven_.end()) {
        if (!claim.name.empty() && claim.name != proven->second.name) proven->second.several = true;
        continue;
      }
      if (claim.name.empty()) claim.name = NameByHelpers(claim.helpers);
      if (claim.name.empty()) continue;  // a table leads to it, and names nothing
      if (claim.several || slots[start] != claim.slots) {
        ++in_doubt_;
        continue;
      }
      functions.push_back({{start}, std::move(claim.name), claim.table});
    }
    for (auto& [start, claim] : proven_) {
      if (claim.several) {
        ++in_doubt_;
        continue;
      }
      functions.push_back({{start}, std::move(claim.name), claim.table});
    }
    absl::c_sort(functions, [](const auto& a, const auto& b) { return a.start < b.start; });
    return functions;
  }

  std::vector<RuntimeTable> TakeTables() { return std::move(tables_); }
  size_t in_doubt() const { return in_doubt_; }

 private:
  struct Pair {
    absl::string_view name;
    VirtualAddress function;
  };
  struct FCall {
    std::string name;
    VirtualAddress function;
  };
  // A word of a table of helpers.
  struct Word {
    bool address = false;    // of a function
    uint64_t value = 0;      // what it is where it is none
    absl::string_view name;  // of the function; empty: not known
    absl::string_view helper;
  };
  // The claim of a table about a function.
  struct Claim {
    std::string name;
    RuntimeTableKind table = RuntimeTableKind::kEntryPoints;
    size_t slots = 0;
    bool several = false;                    // names, one of them perhaps unknown
    std::vector<absl::string_view> helpers;  // that it is
  };

  bool IsFunction(VirtualAddress address) const {
    if (!image_.IsExecutable(address)) return false;
    const std::optional<FunctionBounds> function = unwind_.Find(address);
    return function && function->end_known && function->start == address;
  }

  // Empty: not the address of a text of letters, digits, '_' and the characters of `more`, in data.
  absl::string_view TextAt(VirtualAddress address, absl::string_view more) const {
    if (image_.IsExecutable(address)) return {};
    const auto bytes = image_.BytesFrom(address);
    if (!bytes) return {};
    const absl::string_view text(reinterpret_cast<const char*>(bytes->data()),
                                 std::min(bytes->size(), kMaxNameBytes + 1));
    const size_t end = text.find('\0');
    if (end == absl::string_view::npos || end == 0) return {};
    const absl::string_view name = text.substr(0, end);
    if (absl::ascii_isdigit(static_cast<unsigned char>(name[0]))) return {};
    const auto fits = [more](char c) {
      return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || absl::StrContains(more, c);
    };
    return absl::c_all_of(name, fits) ? name : absl::string_view();
  }

  // The same for a C identifier, which is longer than what bytes look like by chance.
  absl::string_view IdentifierAt(VirtualAddress address) const {
    const absl::string_view name = TextAt(address, "");
    return name.size() < kMinIdentifierBytes ? absl::string_view() : name;
  }

  // The function is told by its code, so other references to it do not matter.
  void Prove(VirtualAddress function, absl::string_view name, RuntimeTableKind table) {
    const auto [entry, fresh] = proven_.try_emplace(function.value);
    Claim& claim = entry->second;
    if (fresh) {
      claim.name = std::string(name);
      claim.table = table;
    } else if (claim.name != name) {
      claim.several = true;
    }
  }

  static std::string NameByHelpers(const std::vector<absl::string_view>& helpers) {
    if (helpers.empty() || helpers.size() > kMaxHelpersOfOne) return "";
    return absl::StrCat(kHelperPrefix, absl::StrJoin(helpers, "|"));
  }

  void Claimed(VirtualAddress function, absl::string_view name, RuntimeTableKind table, absl::string_view helper = {}) {
    const auto [entry, fresh] = claims_.try_emplace(function.value);
    Claim& claim = entry->second;
    ++claim.slots;
    if (!helper.empty()) claim.helpers.push_back(helper);
    if (fresh) {
      claim.name = std::string(name);
      claim.table = table;
    } else if (claim.name != name) {
      claim.several = true;
      if (claim.name.empty()) claim.name = std::string(name);
    }
  }

  void AddEntryPoints() {
    const std::span<const RelativeRelocation> rows = relocations_.all();
    std::vector<Pair> run;
    for (size_t i = 0; i + 1 < rows.size();) {
      const VirtualAddress begin = rows[i].slot;
      run.clear();
      size_t at = i;
      while (at + 1 < rows.size() && rows[at].slot.value - begin.value == run.size() * kPairBytes &&
             rows[at + 1].slot.value - rows[at].slot.value == kWordBytes && image_.IsExecutable(rows[at + 1].target)) {
        const absl::string_view name = IdentifierAt(rows[at].target);
        if (name.empty()) break;
        run.push_back({name, rows[at + 1].target});
        at += 2;
      }
      if (IsTable(run)) {
        tables_.push_back({RuntimeTableKind::kEntryPoints, begin, run.size()});
        for (const Pair& pair : run) Claimed(pair.function, pair.name, RuntimeTableKind::kEntryPoints);
      }
      i = run.empty() ? i + 1 : at;
    }
  }

  // Names of entry points are those of their owners and of what they do: "ThreadNative_SpinWait". In 8 to 11 at least
  // 81 % of the names in each table have such a line.
  bool IsTable(const std::vector<Pair>& run) const {
    if (run.size() < kMinPairs || run.size() > kMaxPairs) return false;
    absl::flat_hash_set<absl::string_view> names;
    size_t in_two_parts = 0;
    for (const Pair& pair : run) {
      if (!names.insert(pair.name).second || !IsFunction(pair.function)) return false;
      if (absl::StrContains(pair.name, '_')) ++in_two_parts;
    }
    return in_two_parts * 4 >= run.size() * 3;
  }

  void AddFCalls() {
    const std::span<const RelativeRelocation> rows = relocations_.all();
    std::vector<FCall> calls;
    size_t budget = kMaxFCallSteps;
    for (size_t i = 0; i + 2 < rows.size();) {
      calls.clear();
      size_t classes = 0, at = i;
      while (at + 2 < rows.size() &&
             AddClass(rows.subspan(at, 3), rows[i].slot.value + classes * kClassBytes, budget, calls)) {
        ++classes;
        at += 3;
      }
      if (budget == 0) return;
      if (classes >= kMinClasses) {
        tables_.push_back({RuntimeTableKind::kFCalls, rows[i].slot, calls.size()});
        for (const FCall& call : calls) {
          Claimed(call.function, call.name, RuntimeTableKind::kFCalls);
          if (call.name == kBulkMove) ProveMoveBehind(call.function);
        }
      }
      i = classes >= kMinClasses ? at : i + 1;
    }
  }

  // In .NET 10 the FCall only looks whether there is anything to move, and jumps to the function that moves
  // (dotnet/runtime: src/coreclr/classlibnative/bcltype/arraynative.inl). In other versions it moves by itself, or
  // calls.
  void ProveMoveBehind(VirtualAddress function) {
    const std::optional<FunctionBounds> bounds = unwind_.Find(function);
    if (!bounds || bounds->end.value - function.value > kMaxBulkMoveBytes) return;
    const std::optional<VirtualAddress> moves = OnlyJumpFrom(image_, unwind_, function);
    if (moves) Prove(*moves, "InlinedMemmoveGCRefsHelper", RuntimeTableKind::kFCalls);
  }

  // Three addresses in a row: a class's name, its namespace and the array of its functions, which must fit to its end.
  bool AddClass(std::span<const RelativeRelocation> rows, uint64_t slot, size_t& budget,
                std::vector<FCall>& calls) const {
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].slot.value != slot + i * kWordBytes) return false;
    }
    if (image_.IsExecutable(rows[2].target)) return false;
    const absl::string_view type = TextAt(rows[0].target, "`"), space = TextAt(rows[1].target, ".");
    if (type.empty() || space.empty()) return false;
    const size_t before = calls.size();
    uint64_t at = rows[2].target.value;
    const auto word = [&](uint64_t offset) -> std::optional<uint64_t> {
      const auto bytes = image_.BytesFrom({at + offset});
      return bytes ? LoadAt<uint64_t>(*bytes, 0) : std::nullopt;
    };
    for (size_t entries = 0; budget > 0; ++entries, --budget) {
      const std::optional<uint64_t> flags = word(0);
      if (!flags || relocations_.At({at})) break;
      if (*flags == kFCallEnd && entries > 0) return true;
      if ((*flags & kFCallEndFlag) != 0) break;
      const std::optional<VirtualAddress> function = relocations_.At({at + kWordBytes}),
                                          text = relocations_.At({at + 2 * kWordBytes});
      // A function that the runtime fills in when it starts is 0.
      if (!text || (function ? !IsFunction(*function) : word(kWordBytes) != 0)) break;
      const absl::string_view name = TextAt(*text, ".`<>");
      if (name.empty()) break;
      if (function) calls.push_back({absl::StrCat(space, ".", type, ".", name), *function});
      at += 3 * kWordBytes;
      if ((*flags & kFCallSignatureFlag) == 0) continue;
      if (!relocations_.At({at})) break;
      at += kWordBytes;
    }
    calls.resize(before);
    return false;
  }

  void AddJitHelpers() {
    struct Found {
      const JitHelperTable* table;
      VirtualAddress at;
    };
    std::optional<Found> found;
    const std::vector<JitHelperTable> tables = JitHelperTables(image_.machine());
    for (const JitHelperTable& table : tables) {
      const std::vector<Word> words = StaticWords(table);
      for (const VirtualAddress at : PlacesOf(words)) {
        if (found) return;  // one of the two is something else
        found = {&table, at};
      }
    }
    if (!found) return;
    ClaimWords(StaticWords(*found->table), found->at, found->table->major);
    const std::vector<Word> words = DynamicWords(*found->table);
    const std::vector<VirtualAddress> places = PlacesOf(words);
    if (places.size() != 1) return;
    ClaimWords(words, places.front(), found->table->major);
    ProveStartup(*found->table, places.front());
  }

  void ProveStartup(const JitHelperTable& table, VirtualAddress at) {
    std::vector<const JitHelper*> dynamic;
    for (const JitHelper& helper : table.helpers) {
      if (helper.kind == JitHelperKind::kDynamic) dynamic.push_back(&helper);
    }
    const std::vector<StartupHelper> set = FindStartupHelpers(image_, unwind_, relocations_, at, dynamic.size());
    std::optional<VirtualAddress> last;  // that sets an allocator
    for (const StartupHelper& one : set) {
      const JitHelper& helper = *dynamic[one.place];
      if (absl::StartsWith(helper.helper, "NEW") || helper.helper == "BOX") last = one.call;
      // If several functions claim one place, each is the helper. It is not known which of them has the known name.
      const bool only = absl::c_all_of(
          set, [&](const StartupHelper& other) { return other.place != one.place || other.function == one.function; });
      Prove(one.function,
            only && !helper.startup_function.empty() ? std::string(helper.startup_function)
                                                     : absl::StrCat(kHelperPrefix, helper.helper),
            RuntimeTableKind::kStartup);
    }
    const auto strings = last ? StringAllocatorBehind(image_, unwind_, relocations_, *last) : std::nullopt;
    if (!strings) return;
    if (table.major >= 10) {
      Prove(*strings, "RhNewString", RuntimeTableKind::kStartup);
      return;
    }
    Prove(*strings, "AllocateString_MP_FastPortable", RuntimeTableKind::kStartup);
    const std::optional<VirtualAddress> slow = OnlyJumpFrom(image_, unwind_, *strings);
    if (slow) Prove(*slow, "FramedAllocateString", RuntimeTableKind::kStartup);
  }

  static std::vector<Word> StaticWords(const JitHelperTable& table) {
    std::vector<Word> words;
    uint64_t dynamic = 0;
    for (const JitHelper& helper : table.helpers) {
      words.push_back({helper.kind == JitHelperKind::kFunction, helper.kind == JitHelperKind::kDynamic ? ++dynamic : 0,
                       helper.function, helper.helper});
    }
    return words;
  }

  static std::vector<Word> DynamicWords(const JitHelperTable& table) {
    std::vector<Word> words;
    for (const JitHelper& helper : table.helpers) {
      if (helper.kind == JitHelperKind::kDynamic)
        words.push_back({helper.leads_to_function, 0, helper.function, helper.helper});
    }
    return words;
  }

  void ClaimWords(const std::vector<Word>& words, VirtualAddress at, int major) {
    size_t functions = 0;
    for (size_t i = 0; i < words.size(); ++i) {
      if (!words[i].address) continue;
      ++functions;
      Claimed(*relocations_.At({at.value + i * kWordBytes}), words[i].name, RuntimeTableKind::kJitHelpers,
              words[i].helper);
    }
    tables_.push_back({RuntimeTableKind::kJitHelpers, at, functions, major});
  }

  // The places of a table of these words, two at most, since no one looks at more.
  std::vector<VirtualAddress> PlacesOf(const std::vector<Word>& words) const {
    const auto first = absl::c_find_if(words, [](const Word& word) { return word.address; });
    const uint64_t before = static_cast<uint64_t>(first - words.begin()) * kWordBytes;
    std::vector<VirtualAddress> places;
    for (const RelativeRelocation& row : relocations_.all()) {
      if (row.slot.value < before || !Fits(words, {row.slot.value - before})) continue;
      places.push_back({row.slot.value - before});
      if (places.size() == 2) break;
    }
    return places;
  }

  bool Fits(const std::vector<Word>& words, VirtualAddress at) const {
    const uint64_t table_bytes = words.size() * kWordBytes;
    if (at.value > UINT64_MAX - table_bytes) return false;
    const std::span<const RelativeRelocation> rows = relocations_.Within(at, table_bytes);
    const auto bytes = image_.BytesFrom(at);
    if (!bytes || bytes->size() < table_bytes) return false;
    auto row = rows.begin();
    for (size_t i = 0; i < words.size(); ++i) {
      const bool address = row != rows.end() && row->slot.value == at.value + i * kWordBytes;
      if (address != words[i].address) return false;
      if (address) {
        if (!image_.IsExecutable(row->target)) return false;
        ++row;
      } else if (*LoadAt<uint64_t>(*bytes, i * kWordBytes) != words[i].value) {
        return false;
      }
    }
    return row == rows.end() && absl::c_all_of(rows, [&](const auto& one) { return IsFunction(one.target); });
  }

  const ElfImage& image_;
  const EhFrameTable& unwind_;
  const RelativeRelocations& relocations_;
  absl::flat_hash_map<uint64_t, Claim> claims_, proven_;
  std::vector<RuntimeTable> tables_;
  size_t in_doubt_ = 0;
};

}  // namespace

absl::string_view RuntimeTableText(RuntimeTableKind kind) {
  switch (kind) {
    case RuntimeTableKind::kEntryPoints:
      return "entry-points";
    case RuntimeTableKind::kFCalls:
      return "fcalls";
    case RuntimeTableKind::kJitHelpers:
      return "jit-helpers";
    case RuntimeTableKind::kStartup:
      return "startup";
    case RuntimeTableKind::kAssembly:
      return "assembly";
  }
  return "";
}

absl::StatusOr<RuntimeFunctions> RuntimeFunctions::Read(const ElfImage& image) {
  if (!ElfExports(image).Find("g_dacTable")) return absl::NotFoundError("it is no runtime: it exports no g_dacTable");
  ASSIGN_OR_RETURN(const EhFrameTable unwind, EhFrameTable::Parse(image));
  if (unwind.size() > kMaxFunctions) return absl::ResourceExhaustedError("it has more functions than a runtime");
  ASSIGN_OR_RETURN(const RelativeRelocations relocations, RelativeRelocations::Read(image));
  Reader reader(image, unwind, relocations);
  reader.Read();
  RuntimeFunctions result;
  result.functions_ = reader.TakeFunctions();
  result.tables_ = reader.TakeTables();
  result.in_doubt_ = reader.in_doubt();
  return result;
}

size_t RuntimeFunctions::memory_bytes() const {
  size_t bytes = sizeof(RuntimeFunctions) + tables_.capacity() * sizeof(RuntimeTable);
  for (const RuntimeFunction& one : functions_) bytes += sizeof one + one.name.capacity() + 1;
  return bytes;
}

const RuntimeFunction* RuntimeFunctions::StartingAt(VirtualAddress address) const {
  const auto found = std::lower_bound(functions_.begin(), functions_.end(), address,
                                      [](const RuntimeFunction& one, VirtualAddress at) { return one.start < at; });
  return found != functions_.end() && found->start == address ? &*found : nullptr;
}

}  // namespace clrsampler
