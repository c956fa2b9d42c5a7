#include "pipeline/address_symbolizer.h"

#include <unistd.h>

#include <algorithm>
#include <random>

#include "absl/strings/str_cat.h"
#include "clr/memory/memory_methods.h"
#include "clr/runtime_discovery.h"
#include "os/clock.h"
#include "pipeline/source_order.h"
#include "process/file_broker.h"
#include "process/proc_root.h"
#include "process/process_table.h"
#include "status/status.h"
#include "symbols/native_lines/native_lines.h"
#include "symbols/symbolizer.h"

namespace clrsampler {
namespace {

class AddressSymbolizerImpl : public AddressSymbolizer {
 public:
  AddressSymbolizerImpl(uint32_t pid, const AddressSymbolizerOptions& options)
      : table_(kProcRoot, clock_, nullptr, options.files),
        discovery_(images_, RuntimeDiscovery::CacheBy::kFile),
        sources_(MakeSources({.frames = frames_,
                              .images = images_,
                              .runtimes = discovery_,
                              .notices = notices_,
                              .clock = clock_,
                              .names = options.names,
                              .lines = options.lines,
                              .line_helper = options.line_helper,
                              .without_files = options.without_files,
                              .without_images = options.without_images,
                              .without_memory = options.without_memory})),
        symbolizer_(sources_.borrowed(), frames_, sources_.line_sources(), &notices_),
        files_(options.files, notices_),
        process_(table_.FindOrScan(pid, 0)) {}

  std::vector<Frame> Name(std::span<const uint64_t> addresses) override {
    // This is done twice: code that may be freed meanwhile counts only where it was seen before and after.
    symbolizer_.Observe(process_, {addresses, {}, clock_.Now()});
    const MonotonicTime time = clock_.Now();
    symbolizer_.Observe(process_, {addresses, {}, clock_.Now()});
    symbolizer_.CatchUp(process_, time, clock_.Now());
    std::vector<Frame> named;
    for (size_t i = 0; i < addresses.size(); ++i) {
      if (i % kAskedAtOnce == 0) AskForLines(addresses.subspan(i, std::min(kAskedAtOnce, addresses.size() - i)));
      const uint64_t address = addresses[i];
      const Mapping* mapping = process_.mappings.Find(address);
      named.push_back(frames_.at(symbolizer_.Resolve({process_, mapping, address, address, time}).frame));
    }
    return named;
  }

  absl::StatusOr<std::vector<uint64_t>> RandomCode(size_t count, uint64_t seed) override {
    symbolizer_.CatchUp(process_, clock_.Now(), clock_.Now());
    RuntimeMemory* runtime = sources_.memory == nullptr ? nullptr : sources_.memory->RuntimeOf(process_.key);
    if (runtime == nullptr) {
      return absl::FailedPreconditionError(
          absl::StrCat("the memory of process ", process_.key.tgid, " is not read: ", WhyNoMemory()));
    }
    std::vector<AddressRange> compiled, prepared;
    for (const CodeSection& section : runtime->Sections()) {
      if (section.kind == CodeSectionKind::kCodeHeap) {
        for (const uint64_t start : runtime->Starts(section)) {
          const std::optional<ManagedCode> code = runtime->Find(start);
          if (code && code->kind == ManagedCode::Kind::kMethod) compiled.push_back(code->range);
        }
      } else if (section.kind == CodeSectionKind::kPrecompiled) {
        for (const RuntimeMemory::PreparedMethod& method : runtime->PreparedMethods(section)) {
          if (!section.range.contains(method.entry_point)) continue;
          const std::optional<ManagedCode> code = runtime->Find(method.entry_point);
          if (code && code->kind == ManagedCode::Kind::kPrecompiled) prepared.push_back(code->range);
        }
      }
    }
    // Else an instruction may begin at any byte.
    const uint64_t instruction_bytes = runtime->layout().machine == ElfMachine::kArm64 ? 4 : 1;
    std::mt19937_64 random(seed);
    std::vector<uint64_t> addresses;
    for (size_t i = 0; i < count && !(compiled.empty() && prepared.empty()); ++i) {
      const auto& ranges = prepared.empty() || (i % 2 == 0 && !compiled.empty()) ? compiled : prepared;
      const AddressRange& range = ranges[random() % ranges.size()];
      const uint64_t address = range.begin + random() % (range.end - range.begin);
      addresses.push_back(address - address % instruction_bytes);
    }
    return addresses;
  }

  std::vector<std::string> notices() const override {
    std::vector<std::string> texts;
    for (const Notice& notice : notices_.kept()) texts.push_back(notice.message);
    return texts;
  }

 private:
  // The number of questions about native code that wait is bounded, below that of addresses here.
  static constexpr size_t kAskedAtOnce = 8192;

  void AskForLines(std::span<const uint64_t> addresses) {
    if (sources_.native_lines == nullptr) return;
    sources_.native_lines->Observe(process_, {addresses, {}, clock_.Now()});
    sources_.AwaitLines(clock_);
  }

  std::string WhyNoMemory() {
    if (sources_.memory == nullptr) return "it was left out";
    std::string why = sources_.memory->RefusalOf(process_.key);
    if (!why.empty()) return why;
    const std::optional<DotNetRuntime> emulated = discovery_.FindEmulated(process_);
    return emulated.has_value() ? EmulationText(*emulated) : "no .NET runtime was found in it";
  }

  SystemClock clock_;
  Notices notices_;
  FrameTable frames_;
  ImageFiles images_;
  ProcessTable table_;
  RuntimeDiscovery discovery_;
  Sources sources_;
  Symbolizer symbolizer_;
  FileBrokerReports files_;
  Process& process_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<AddressSymbolizer>> AddressSymbolizer::Create(uint32_t pid,
                                                                             const AddressSymbolizerOptions& options) {
  if (access(absl::StrCat(kProcRoot, "/", pid).c_str(), F_OK) != 0) {
    return WithHint(absl::NotFoundError(absl::StrCat("no process ", pid)), "clrsampler ps lists .NET processes");
  }
  return std::unique_ptr<AddressSymbolizer>(new AddressSymbolizerImpl(pid, options));
}

}  // namespace clrsampler
