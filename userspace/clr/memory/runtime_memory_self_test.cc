// The second part of RuntimeMemory: whether this reader understands the runtime, by methods whose names are known.
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "clr/memory/runtime_memory.h"
#include "formats/pe/pe_image.h"
#include "formats/pe/r2r_image.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// Enough to meet generic and nested types, few enough to take a millisecond.
constexpr size_t kSelfTestMethods = 64;

// CoreLib needs none.
class NoAssemblies : public AssemblyOpener {
 public:
  std::optional<OpenedAssembly> Open(absl::string_view) override { return std::nullopt; }
};

// Empty: it has none.
std::string AssemblyNameOf(const PeImage& pe) {
  const auto metadata = pe.metadata() ? pe.Bytes(*pe.metadata()) : std::nullopt;
  if (!metadata) return "";
  const absl::StatusOr<MetadataTables> tables = MetadataTables::Parse(*metadata);
  return tables.ok() ? std::string(tables->AssemblyName().value_or("")) : "";
}

// The runtime frees tables while they are read, to make larger ones. Another time they fit together, or the runtime is
// refused after some tries (memory_attach.cc).
absl::Status TryAgain(absl::string_view what, absl::string_view why) {
  return absl::AbortedError(absl::StrCat(what, " can't be followed: ", why));
}

}  // namespace

// The methods of one image that the runtime has prepared. OK: they have the image's names, or there are none.
absl::Status RuntimeMemory::CompareSection(const CodeSection& section, R2rImage& image, AssemblyOpener& assemblies,
                                           size_t most) {
  MemoryProbe table(memory_);
  const std::vector<PreparedMethod> prepared = precompiled_->PreparedIn(section, table);
  constexpr absl::string_view kTable = "its table of prepared methods";
  if (!table.ok()) return TryAgain(kTable, table.detail());
  std::vector<uint32_t> entry_points;
  for (const PreparedMethod& method : prepared) {
    entry_points.push_back(static_cast<uint32_t>(method.entry_point - section.range.begin));
  }
  std::optional<MemoryProbe> unread;
  const auto name_of = [&](size_t i) -> std::optional<MethodName> {
    MemoryProbe own(memory_);
    RuntimeMethod method = types_->Method(own, prepared[i].method_desc, section.collectible);
    if (own.failure() == ProbeFailure::kContradiction) return MethodName{.method = own.detail()};
    if (own.ok()) return std::move(method.name);
    unread.emplace(own);
    return std::nullopt;
  };
  const size_t before = self_test_.compared;
  const absl::Status equal = CompareWithImage(image, assemblies, entry_points, name_of, most, self_test_);
  image.ForgetMissing();  // the comparison opens no other assemblies; who else uses the image may
  RETURN_IF_ERROR(equal);
  if (unread && self_test_.compared == before) return TryAgain("its prepared methods", unread->detail());
  return absl::OkStatus();
}

absl::Status RuntimeMemory::SelfTest(const MappedContentFinder& files, bool proven) {
  MemoryProbe probe(memory_, kListBudget, size_t{64} << 20);
  const std::vector<CodeSection> sections = ranges_->Sections(probe);
  if (!probe.ok()) return TryAgain("its map of code", probe.detail());
  if (sections.empty()) return absl::UnavailableError("the runtime has no code yet");
  types_->TrustMethodArguments(true);
  for (const CodeSection& section : sections) {
    if (section.kind != CodeSectionKind::kPrecompiled) continue;
    const std::optional<MappedContent> content = files ? files(section.range.begin) : std::nullopt;
    if (!content) continue;
    absl::StatusOr<PeImage> pe = PeImage::Parse(content->bytes);
    if (!pe.ok()) continue;
    const std::string assembly = AssemblyNameOf(*pe);
    if (!assembly.empty() && assembly != kCoreLib) continue;
    // Without a name: perhaps a composite, which has CoreLib's methods and not its metadata.
    const R2rTables tables = place_.tables_at ? place_.tables_at(section.range.begin) : R2rTables{};
    R2rImage* image = tables.image;
    std::unique_ptr<R2rImage> for_the_test;
    if (image == nullptr) {
      if (assembly.empty()) continue;
      absl::StatusOr<std::unique_ptr<R2rImage>> opened = R2rImage::Open(*std::move(pe), kCoreLib);
      if (!opened.ok()) continue;  // a newer format: r2r_methods.h says so
      for_the_test = *std::move(opened);
      image = for_the_test.get();
    }
    NoAssemblies no_assemblies;
    AssemblyOpener& assemblies = assembly.empty() && tables.assemblies ? *tables.assemblies : no_assemblies;
    RETURN_IF_ERROR(CompareSection(section, *image, assemblies, proven ? kSelfTestMethods / 8 : kSelfTestMethods));
    if (self_test_.compared > 0) break;
  }
  if (!proven && !described_ && !self_test_.proves_method_arguments()) LookForArguments(sections);
  // Without a witness for their place the arguments of generic methods are left out, and only those.
  types_->TrustMethodArguments(proven || described_ || self_test_.proves_method_arguments());
  return absl::OkStatus();
}

// Where no image can be compared with, since CoreLib has no precompiled code: trimmed programs.
void RuntimeMemory::LookForArguments(const std::vector<CodeSection>& sections) {
  constexpr size_t kMostBodies = 2000;
  absl::flat_hash_set<uint64_t> seen;
  size_t left = kMostBodies;
  MemoryProbe maps(memory_, kListBudget, size_t{64} << 20);
  for (const CodeSection& section : sections) {
    if (left == 0 || seen.size() >= SelfTestReport::kEnoughPlausible) break;
    if (section.kind != CodeSectionKind::kCodeHeap || section.collectible) continue;
    for (const uint64_t start : ranges_->Starts(maps, section, left)) {
      if (seen.size() >= SelfTestReport::kEnoughPlausible) break;
      --left;
      MemoryProbe probe(memory_);
      const std::optional<MethodCode> code = ranges_->MethodAt(probe, section, start);
      if (!code || code->stub_kind != 0) continue;
      const RuntimeMethod method = types_->Method(probe, code->method_desc, section.collectible);
      // A pointer that leads nowhere tells as much as one that leads to something else.
      if (probe.failure() == ProbeFailure::kContradiction || probe.failure() == ProbeFailure::kUnreadable) return;
      if (probe.ok() && !method.name.method_args.empty()) seen.insert(code->method_desc);
    }
  }
  self_test_.plausible_arguments = seen.size();
}

}  // namespace clrsampler
