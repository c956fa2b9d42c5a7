#include "clr/hooks/allocation_search.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clr/hooks/allocation_scan_arm64.h"
#include "clr/hooks/allocation_scan_x64.h"
#include "clr/hooks/image_code.h"
#include "clr/runtime_image.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// The parts of the search that know a machine's code.
struct Scan {
  bool (*may_report)(std::span<const std::byte>);
  AllocationReports (*find)(std::span<const std::byte>, VirtualAddress);
  std::optional<AllocationFacts> (*facts_of)(std::span<const std::byte>);
};

Scan ScanOf(ElfMachine machine) {
  if (machine == ElfMachine::kX64) return {x64::MayReportAllocations, x64::FindAllocationReports, x64::FactsOfReport};
  return {arm64::MayReportAllocations, arm64::FindAllocationReports, arm64::FactsOfReport};
}

// Where one report stands.
struct FoundReport {
  FunctionIndex function = 0;
  uint64_t offset = 0;  // from the function's first byte
  bool inlined = false;
  AllocationFacts facts;
  std::string evidence;
};

struct Found {
  std::vector<VirtualAddress> called;
  std::vector<FoundReport> inlined;
  size_t unknown = 0, resets = 0, followed = 0;
};

Found SearchAll(const ImageCode& code, const Scan& scan) {
  Found found;
  for (FunctionIndex function = 0; function < code.functions().size(); ++function) {
    const std::span<const std::byte> bytes = code.Code(function);
    if (!scan.may_report(bytes)) continue;
    AllocationReports reports = scan.find(bytes, code.Start(function));
    found.called.insert(found.called.end(), reports.called.begin(), reports.called.end());
    found.unknown += reports.unknown_sites;
    found.followed += reports.followed;
    if (found.followed > kMaxFollowed) break;  // which is refused
    if (reports.sites.empty()) continue;
    found.resets += reports.resets;
    for (const AllocationSite& site : reports.sites) {
      found.inlined.push_back(
          {function, site.offset, true, site.facts,
           absl::StrCat("the function at ", AddressText(code.Start(function)),
                        " compares a sum with 100 KB and calls slot 14 of the event sink with it")});
    }
  }
  return found;
}

std::vector<FoundReport> Functions(const ImageCode& code, const Scan& scan, std::vector<VirtualAddress> called) {
  std::sort(called.begin(), called.end(), [](auto a, auto b) { return a.value < b.value; });
  called.erase(std::unique(called.begin(), called.end()), called.end());
  std::vector<FoundReport> reports;
  for (const VirtualAddress address : called) {
    const std::optional<FunctionIndex> function = code.functions().StartingAt(address);
    const auto facts = function ? scan.facts_of(code.Code(*function)) : std::nullopt;
    if (!facts) continue;  // the sum is compared for other reasons, too
    reports.push_back({*function, 0, false, *facts,
                       "called where a sum is above 100 KB, and calls slot 14 of the event sink with that sum"});
  }
  return reports;
}

// The workstation collector's, and the server collector's, which has several heaps. All runtimes hold both: with one
// alone a process that uses the other would seem to allocate nothing.
bool AreOneForEachCollector(const std::vector<FoundReport>& functions) {
  return functions.size() == 2 && functions[0].facts.of_one_heap != functions[1].facts.of_one_heap;
}

absl::StatusOr<std::vector<FoundReport>> FindReports(const ImageCode& code) {
  const Scan scan = ScanOf(code.image().machine());
  Found found = SearchAll(code, scan);
  if (found.followed > kMaxFollowed) {
    return absl::UnimplementedError("more places may report allocations than in any runtime");
  }
  std::vector<FoundReport> functions = Functions(code, scan, std::move(found.called));
  if (found.inlined.empty() && found.unknown == 0) {
    if (functions.empty()) return absl::NotFoundError("nothing reports a sum above 100 KB to the event sink");
    if (!AreOneForEachCollector(functions)) {
      return absl::FailedPreconditionError(
          absl::StrCat(functions.size(), " functions report allocations, and not one for each collector"));
    }
    return functions;
  }
  if (!functions.empty()) {
    return absl::FailedPreconditionError("allocations are reported by functions and in others, too");
  }
  if (found.unknown != 0) {
    return absl::FailedPreconditionError(absl::StrCat(found.unknown, " of ", found.unknown + found.inlined.size(),
                                                      " reports of allocations are not understood"));
  }
  if (found.resets != found.inlined.size()) {
    return absl::FailedPreconditionError(absl::StrCat("the sum of allocations begins anew at ", found.resets,
                                                      " places, but is reported at ", found.inlined.size()));
  }
  return std::move(found.inlined);
}

// The last check, through which every address goes.
absl::StatusOr<AllocationPoint> PointOf(const ImageCode& code, const FoundReport& report) {
  AllocationPoint point{.address = {code.Start(report.function).value + report.offset},
                        .offset = {code.functions().Offset(report.function).value + report.offset},
                        .inlined = report.inlined,
                        .facts = report.facts,
                        .evidence = report.evidence};
  if (!report.inlined && !code.BeginsWithFrame(report.function)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the function at ", AddressText(point.address), " sets up its frame in no known way"));
  }
  if (code.image().ToOffset(point.address) != point.offset || code.image().ToAddress(point.offset) != point.address) {
    return absl::DataLossError(
        absl::StrCat("the address ", AddressText(point.address), " has no one place in the file"));
  }
  return point;
}

absl::StatusOr<std::vector<AllocationPoint>> AllocationsIn(const ElfImage& runtime) {
  const RuntimeImageKind kind = ReadRuntimeImage(runtime).kind;
  if (kind != RuntimeImageKind::kCoreClr && kind != RuntimeImageKind::kSingleFileHost &&
      kind != RuntimeImageKind::kStandaloneGc) {
    return absl::UnimplementedError("where a NativeAOT program reports allocations is not known");
  }
  const absl::StatusOr<ImageCode> code = ImageCode::Read(runtime);
  if (!code.ok()) return Annotate(code.status(), "the runtime's functions can't be told");
  ASSIGN_OR_RETURN(const std::vector<FoundReport> reports, FindReports(*code));
  std::vector<AllocationPoint> points;
  for (const FoundReport& report : reports) {
    ASSIGN_OR_RETURN(AllocationPoint point, PointOf(*code, report));
    points.push_back(std::move(point));
  }
  return points;
}

}  // namespace

absl::StatusOr<std::vector<AllocationPoint>> LocateAllocations(const ElfImage& collector) {
  absl::StatusOr<std::vector<AllocationPoint>> points = AllocationsIn(collector);
  if (!points.ok()) return WithHint(points.status(), kUnknownBuild);
  return points;
}

}  // namespace clrsampler
