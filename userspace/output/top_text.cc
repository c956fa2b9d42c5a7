#include "output/top_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "output/durations.h"
#include "output/summary.h"

namespace clrsampler {
namespace {

absl::string_view KindWord(ModelFrameKind kind) {
  switch (kind) {
    case ModelFrameKind::kJit:
      return "jit";
    case ModelFrameKind::kR2r:
      return "r2r";
    case ModelFrameKind::kAot:
      return "aot";
    case ModelFrameKind::kRole:
      return "role";
    case ModelFrameKind::kKernel:
      return "kernel";
    case ModelFrameKind::kNative:
      return "native";
    default:
      return "";
  }
}

// "-": nobody looked.
std::string OrNone(bool known, const std::string& text) { return known ? text : "-"; }

}  // namespace

std::string FitWidth(const std::string& text, size_t width, bool pad) {
  std::string out;
  size_t characters = 0;
  for (size_t i = 0; i < text.size();) {
    if (characters == width) return out;
    size_t end = i + 1;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) ++end;
    out.append(text, i, end - i);
    i = end;
    ++characters;
  }
  if (pad) out.append(width - characters, ' ');
  return out;
}

std::string TopProcessHeader(size_t width) {
  return FitWidth(absl::StrFormat("%7s %6s %5s %5s %5s %5s %5s %8s %7s %8s %7s  %s", "PID", "CPU%", "man%", "nat%",
                                  "krn%", "gc%", "jit%", "pauses/s", "paused%", "longest", "jit/s", "PROCESS"),
                  width, false);
}

std::string TopProcessLine(const TopProcess& process, size_t width) {
  const auto share = [&](CpuShare which) {
    return absl::StrFormat("%.0f", 100 * process.shares[static_cast<size_t>(which)]);
  };
  std::string name = PrintableText(process.comm);
  if (!process.runtime.empty()) absl::StrAppend(&name, "  .NET ", PrintableText(process.runtime));
  if (!process.container.empty()) absl::StrAppend(&name, "  ", PrintableText(process.container));
  return FitWidth(
      absl::StrFormat("%7d %6.1f %5s %5s %5s %5s %5s %8s %7s %8s %7s  %s", process.pid, 100 * process.cpus,
                      share(CpuShare::kManaged), share(CpuShare::kNative), share(CpuShare::kKernel),
                      share(CpuShare::kGc), share(CpuShare::kJit),
                      OrNone(process.hooked, absl::StrFormat("%.1f", process.pauses_per_second)),
                      OrNone(process.hooked, absl::StrFormat("%.2f", 100 * process.paused)),
                      OrNone(process.longest_pause_ns > 0, DurationText(process.longest_pause_ns)),
                      OrNone(process.hooked, absl::StrFormat("%.0f", process.compilations_per_second)), name),
      width, false);
}

std::string TopMethodHeader(size_t width) {
  return FitWidth(absl::StrFormat("%6s %6s %6s %6s  %-6s  %s", "self%", "total%", "CPU%", "with%", "kind", "METHOD"),
                  width, false);
}

std::string TopMethodLine(const MethodWeight& method, double seconds, uint64_t total_ns, size_t width) {
  const double all = static_cast<double>(std::max<uint64_t>(total_ns, 1));
  const double ns = std::max(seconds * 1e9, 1.0);
  const auto self = static_cast<double>(method.self), total = static_cast<double>(method.total);
  return FitWidth(absl::StrFormat("%6.1f %6.1f %6.1f %6.1f  %-6s  %s", 100 * self / all, 100 * total / all,
                                  100 * self / ns, 100 * total / ns, KindWord(method.kind), PrintableText(method.name)),
                  width, false);
}

std::string TopStateLine(const TopTable& table) {
  const FrameCounts frames = table.frames();
  const uint64_t all = frames.named + frames.unnamed;
  std::string text = absl::StrFormat("last %.0f s: %d samples", table.seconds(), table.samples());
  if (all > 0) {
    absl::StrAppendFormat(&text, ", %.1f %% of frames named",
                          100.0 * static_cast<double>(frames.named) / static_cast<double>(all));
  }
  absl::StrAppend(&text, table.lost() > 0 ? absl::StrCat(", ", table.lost(), " lost") : ", nothing lost");
  return text;
}

}  // namespace clrsampler
