// hook_check: where would probes go in these files?
//
//   hook_check RUNTIME [--jit JIT] [--debug DEBUG] [--jit-debug DEBUG]
//   hook_check --allocations RUNTIME
//   hook_check --exceptions RUNTIME
//
// RUNTIME is a libcoreclr.so, a single-file host or a NativeAOT program; DEBUG the separate debug file of the one or
// the other. Prints a line for each address that is found, or for each refusal:
//   HOOK IMAGE OFFSET ADDRESS SHIFT EVIDENCE
//   HOOK refused: SENTENCE (HINT)
// and the same for what else is found: "jit-interface GUID", "jit-return IMAGE OFFSET ADDRESS FLAGS", "gc-settings
// ADDRESS". With --allocations a line for each place where the collector reports allocated memory:
//   allocations OFFSET ADDRESS function|inlined BYTES HEAP OBJECT EVIDENCE
// where rN is a register by its DWARF number, [fp+N] a word of the frame and N a constant. With --exceptions a line for
// the place where exceptions come by:
//   exceptions OFFSET ADDRESS iterator|event EVIDENCE
// Exit status 1: something was refused; 2: a file can't be read.
#include <cstdio>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "clr/hooks/allocation_search.h"
#include "clr/hooks/exception_search.h"
#include "clr/hooks/hook_locator.h"
#include "os/file_io.h"
#include "os/mapped_file.h"
#include "status/status.h"

namespace clrsampler {
namespace {

struct OpenImage {
  MappedFile file;
  std::optional<ElfImage> image;
  const ElfImage* get() const { return image ? &*image : nullptr; }
};

absl::StatusOr<OpenImage> Open(const std::string& path) {
  OpenImage opened;
  if (path.empty()) return opened;
  constexpr uint64_t kMaxBytes = uint64_t{4} << 30;
  const absl::StatusOr<UniqueFd> fd = OpenForReading(path);
  if (!fd.ok()) return fd.status();
  absl::StatusOr<MappedFile> file = MappedFile::Map(fd->get(), 0, 0, kMaxBytes);
  if (!file.ok()) return file.status();
  opened.file = *std::move(file);
  absl::StatusOr<ElfImage> image = ElfImage::Parse(opened.file.bytes());
  if (!image.ok()) return Annotate(image.status(), path);
  opened.image = *std::move(image);
  return opened;
}

int refusals = 0;

void Refused(absl::string_view what, const absl::Status& status) {
  ++refusals;
  std::printf("%s refused: %s (%s)\n", std::string(what).c_str(), std::string(status.message()).c_str(),
              HintOf(status).c_str());
}

void Print(const RuntimeHooks& hooks) {
  for (size_t i = 0; i < kHookKinds; ++i) {
    const HookKind kind = static_cast<HookKind>(i);
    if (!hooks[kind].ok()) {
      Refused(HookKindText(kind), hooks[kind].status());
      continue;
    }
    for (const HookPoint& point : *hooks[kind]) {
      std::printf("%s %s 0x%llx 0x%llx %d %s\n", std::string(HookKindText(kind)).c_str(),
                  point.image == HookImage::kJit ? "jit" : "runtime",
                  static_cast<unsigned long long>(point.offset.value),
                  static_cast<unsigned long long>(point.address.value), point.argument_shift, point.evidence.c_str());
    }
  }
  if (!hooks.jit_interface.empty()) std::printf("jit-interface %s\n", hooks.jit_interface.c_str());
  if (hooks.jit_return.ok()) {
    std::printf("jit-return %s 0x%llx 0x%llx entry-%s\n",
                hooks.jit_return->image == HookImage::kJit ? "jit" : "runtime",
                static_cast<unsigned long long>(hooks.jit_return->offset.value),
                static_cast<unsigned long long>(hooks.jit_return->address.value),
                hooks.jit_return->form == CompileForm::kEntryOnFrame ? "on-frame" : "in-register");
  } else {
    Refused("jit-return", hooks.jit_return.status());
  }
  if (!hooks.gc_settings.ok()) return Refused("gc-settings", hooks.gc_settings.status());
  for (const GcSettings& settings : *hooks.gc_settings) {
    std::printf("gc-settings 0x%llx\n", static_cast<unsigned long long>(settings.at.value));
  }
}

std::string ValueText(const ProbeValue& value) {
  switch (value.kind) {
    case ProbeValue::Kind::kUnknown:
      return "?";
    case ProbeValue::Kind::kRegister:
      return absl::StrCat("r", value.number);
    case ProbeValue::Kind::kFrame:
      return absl::StrCat("[fp+", value.number, "]");
    case ProbeValue::Kind::kConstant:
      return absl::StrCat(value.number);
  }
  return "";
}

void PrintAllocations(const ElfImage& runtime) {
  const absl::StatusOr<std::vector<AllocationPoint>> points = LocateAllocations(runtime);
  if (!points.ok()) return Refused("allocations", points.status());
  for (const AllocationPoint& point : *points) {
    std::printf("allocations 0x%llx 0x%llx %s %s %s %s %s\n", static_cast<unsigned long long>(point.offset.value),
                static_cast<unsigned long long>(point.address.value), point.inlined ? "inlined" : "function",
                ValueText(point.facts.bytes).c_str(), ValueText(point.facts.heap).c_str(),
                ValueText(point.facts.object).c_str(), point.evidence.c_str());
  }
}

void PrintExceptions(const ElfImage& runtime) {
  const absl::StatusOr<ExceptionPoint> point = LocateExceptions(runtime);
  if (!point.ok()) return Refused("exceptions", point.status());
  std::printf("exceptions 0x%llx 0x%llx %s %s\n", static_cast<unsigned long long>(point->offset.value),
              static_cast<unsigned long long>(point->address.value),
              point->form == ExceptionForm::kFrameIterator ? "iterator" : "event", point->evidence.c_str());
}

}  // namespace

int Run(int argc, char** argv) {
  std::string paths[4];  // runtime, its debug file, JIT, its debug file
  const absl::string_view subject = argc > 1 ? argv[1] : "";
  const bool allocations = subject == "--allocations", exceptions = subject == "--exceptions";
  for (int i = allocations || exceptions ? 2 : 1; i < argc; ++i) {
    const absl::string_view word = argv[i];
    const int option = word == "--debug" ? 1 : word == "--jit" ? 2 : word == "--jit-debug" ? 3 : 0;
    if (option != 0 && i + 1 == argc) break;
    paths[option] = option == 0 ? argv[i] : argv[++i];
  }
  if (paths[0].empty()) {
    std::fprintf(stderr, "usage: hook_check RUNTIME [--jit JIT] [--debug DEBUG] [--jit-debug DEBUG]\n");
    return 2;
  }
  OpenImage images[4];
  for (int i = 0; i < 4; ++i) {
    absl::StatusOr<OpenImage> opened = Open(paths[i]);
    if (!opened.ok()) {
      std::printf("unreadable: %s\n", std::string(opened.status().message()).c_str());
      return 2;
    }
    images[i] = *std::move(opened);
  }
  if (allocations || exceptions) {
    allocations ? PrintAllocations(*images[0].get()) : PrintExceptions(*images[0].get());
    return refusals == 0 ? 0 : 1;
  }
  Print(LocateHooks({images[0].get(), images[1].get(), images[2].get(), images[3].get()}));
  return refusals == 0 ? 0 : 1;
}

}  // namespace clrsampler

int main(int argc, char** argv) { return clrsampler::Run(argc, argv); }
