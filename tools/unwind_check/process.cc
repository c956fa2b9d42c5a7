// JIT-compiled methods of a running process, through the profiler's own source of unwind data. The runtime's names say
// which of them replace a method while it runs, and which is the first version of the same method.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>

#include "absl/strings/match.h"
#include "clr/memory/memory_methods.h"
#include "formats/unwind/x64_code.h"
#include "process/process_table.h"
#include "unwind_check.h"
#include "unwind_data/jit_unwind_data.h"

namespace clrsampler {

int CheckProcess(uint32_t pid) {
  const SystemClock clock;
  ProcessTable processes("/proc", clock);
  const Process& process = processes.FindOrScan(pid, 0);
  ImageFiles images;
  FrameTable frames;
  Notices notices;
  RuntimeDiscovery runtimes(images, RuntimeDiscovery::CacheBy::kFile);
  MemoryMethods names({}, runtimes, images, frames, notices, clock);
  names.Poll(process, clock.Now());
  RuntimeMemory* runtime = names.RuntimeOf(process.key);
  if (runtime == nullptr) {
    std::printf("the runtime of %u can't be read: %s\n", pid, names.RefusalOf(process.key).c_str());
    return 1;
  }
  JitUnwindData unwind_data([&](ProcessKey key) { return names.RuntimeOf(key); }, clock);

  uint32_t methods = 0, transient = 0, stubs = 0, functions = 0, unreadable = 0, gone = 0, differences = 0, osr = 0,
           osr_wrong = 0, osr_frames = 0, osr_frames_wrong = 0, moving_sp = 0, epilogues = 0, wrong_funclets = 0;
  std::multimap<uint64_t, uint32_t> first_versions;  // frame bytes below the saved rbp, by MethodDesc
  std::vector<std::pair<uint64_t, uint32_t>> replacing;
  double spent_ns = 0;
  for (const CodeSection& section : runtime->Sections()) {
    if (section.kind != CodeSectionKind::kCodeHeap) continue;
    for (const uint64_t start : runtime->Starts(section)) {
      const Mapping* mapping = process.mappings.Find(start);
      const auto at = [&](uint64_t address) {
        // Transient code holds from reading to reading only.
        return FrameQuery{process, mapping, address, address, clock.Now()};
      };
      const std::optional<ManagedCode> named = runtime->Find(start);
      if (!named || named->kind == ManagedCode::Kind::kNoMethod) {
        ++gone;
        continue;
      }
      if (named->transient) {  // seen before and after
        const uint64_t addresses[] = {start};
        unwind_data.Observe(process, {addresses, {}, clock.Now()});
      }
      const auto began = std::chrono::steady_clock::now();
      const FrameQuery query = at(start);
      if (named->transient) {
        const uint64_t addresses[] = {start};
        unwind_data.Observe(process, {addresses, {}, clock.Now()});
      }
      const CodeAt first = unwind_data.At(query);
      spent_ns += std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - began).count();
      if (named->kind == ManagedCode::Kind::kStub) {
        ++stubs;
        if (first.kind != CodeKind::kStub) {
          ++unreadable;
          std::printf("  %llx a stub is not recognised\n", static_cast<unsigned long long>(start));
        }
        continue;
      }
      ++methods;
      transient += named->transient ? 1 : 0;
      if (first.kind != CodeKind::kManaged) {
        if (named->transient && !runtime->Stands(named->code)) {
          ++gone;
          continue;
        }
        if (++unreadable <= 5)
          std::printf("  %llx %s: no unwind data\n", static_cast<unsigned long long>(start),
                      named->name.method.c_str());
        continue;
      }
      const bool is_osr = absl::StrContains(named->name.tier, "OSR");
      osr += is_osr ? 1 : 0;
      if (is_osr != first.managed->osr && !named->name.tier.empty()) {
        ++osr_wrong;
        std::printf("  %llx %s: tier %s\n", static_cast<unsigned long long>(start), named->name.method.c_str(),
                    named->name.tier.c_str());
      }
      uint32_t below = 0;
      for (const UnwindCode& code : first.managed->unwind.codes) {
        if (code.op == UnwindOp::kAlloc) below += code.value;
        if (code.op == UnwindOp::kPush && code.reg != kUnwindRbp) below += 8;
      }
      if (is_osr) {
        replacing.emplace_back(named->code.method_desc, first.managed->osr_frame_bytes);
      } else {
        first_versions.emplace(named->code.method_desc, below);
      }
      for (uint64_t address = start; address < named->range.end;) {
        const CodeAt part = address == start ? first : unwind_data.At(at(address));
        if (part.kind != CodeKind::kManaged) {
          if (named->transient) break;
          ++unreadable;
          std::printf("  %llx %s: a part has no unwind data\n", static_cast<unsigned long long>(address),
                      named->name.method.c_str());
          break;
        }
        const ManagedFunction& function = *part.managed;
        ++functions;
        moving_sp += function.unwind.frame_register != 0 ? 1 : 0;
        bool saves_rbp = false;
        for (const UnwindCode& one : function.unwind.codes)
          saves_rbp |= one.op == UnwindOp::kPush && one.reg == kUnwindRbp;
        if (function.funclet && saves_rbp != FuncletFrameReady(function.code).has_value()) ++wrong_funclets;
        if (!function.osr || function.funclet) {
          if (const std::string difference = PrologueDifference(function); !difference.empty()) {
            if (++differences <= 5)
              std::printf("  %llx %s: %s\n", static_cast<unsigned long long>(address), named->name.method.c_str(),
                          difference.c_str());
          }
        }
        bool recognised = false;
        EpilogueDifference(function, recognised);
        epilogues += recognised ? 1 : 0;
        address = std::max(function.end, address + 1);
      }
    }
  }
  // The frame that an OSR method begins with is that of the first version, and the return address into that.
  for (const auto& [method, bytes] : replacing) {
    const auto [begin, end] = first_versions.equal_range(method);
    if (begin == end) continue;
    ++osr_frames;
    if (std::none_of(begin, end, [&, bytes = bytes](const auto& one) { return one.second + 8 == bytes; })) {
      ++osr_frames_wrong;
      std::printf("  an OSR frame of %u bytes is none of its method's\n", bytes);
    }
  }
  std::printf(
      "methods %u transient %u stubs %u gone %u functions %u unreadable %u differences %u osr %u osr-wrong %u "
      "osr-frames %u "
      "osr-frames-wrong %u moving-sp %u epilogues %u wrong-funclets %u read-ns %.0f\n",
      methods, transient, stubs, gone, functions, unreadable, differences, osr, osr_wrong, osr_frames, osr_frames_wrong,
      moving_sp, epilogues, wrong_funclets, methods == 0 ? 0 : spent_ns / methods);
  return static_cast<int>(unreadable + differences + osr_wrong + osr_frames_wrong + wrong_funclets) +
         (methods == 0 ? 1 : 0);
}

}  // namespace clrsampler
