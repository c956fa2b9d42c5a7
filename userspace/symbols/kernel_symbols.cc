#include "symbols/kernel_symbols.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "formats/proc/kallsyms_text.h"
#include "os/file_io.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// A kernel with all symbols and many modules has some 250,000 lines of 45 bytes.
constexpr size_t kMaxTextBytes = 256 << 20;
constexpr absl::string_view kModuleOfKernel = "kernel";
// Sizes are not in the file: a symbol ends at the next one. The last symbol of a module must not reach over the gap
// behind it. No function is larger than this.
constexpr uint64_t kMaxFunctionBytes = 1 << 20;

// Marks the end of code. Addresses behind it have no name.
bool IsEndMark(absl::string_view name) { return name == "_etext" || name == "_einittext" || name == "__end_text"; }

}  // namespace

struct KernelSymbols::Loading {
  struct Line {
    uint64_t address;
    uint32_t order;  // in the file
    uint32_t name;   // in `text`
    uint32_t name_bytes;
    uint32_t module;
  };
  std::vector<Line> lines;
  absl::string_view text;
};

absl::StatusOr<std::string> KernelSymbols::ReadProcKallsyms() { return ReadWholeFile("/proc/kallsyms", kMaxTextBytes); }

void KernelSymbols::Load() {
  loaded_ = true;
  status_ = absl::OkStatus();
  blocks_.clear();
  rows_.clear();
  names_.clear();
  modules_.assign(1, std::string(kModuleOfKernel));
  const absl::StatusOr<std::string> text = read_text_();
  if (!text.ok()) {
    status_ = Annotate(text.status(), "cannot read kernel symbols");
    return;
  }
  if (text->size() > std::numeric_limits<uint32_t>::max()) {
    status_ = absl::ResourceExhaustedError("kernel symbols of more than 4 GiB");
    return;
  }
  Loading loading;
  loading.text = *text;
  loading.lines.reserve(text->size() / 60);
  absl::flat_hash_map<std::string, uint32_t> module_numbers;
  bool any_address = false;
  ForEachKallsymsLine(*text, [&](const KallsymsLine& line) {
    if (!line.is_code() || line.name.front() == '$') return;
    any_address |= line.address != 0;
    uint32_t module = 0;
    if (!line.module.empty()) {
      if (modules_.back() == line.module) {  // a module's lines stand together
        module = static_cast<uint32_t>(modules_.size() - 1);
      } else {
        const auto [it, fresh] = module_numbers.try_emplace(line.module, static_cast<uint32_t>(modules_.size()));
        if (fresh) modules_.emplace_back(line.module);
        module = it->second;
      }
    }
    loading.lines.push_back({line.address, static_cast<uint32_t>(loading.lines.size()),
                             static_cast<uint32_t>(line.name.data() - text->data()),
                             static_cast<uint32_t>(line.name.size()), module});
  });
  if (!any_address) {
    status_ =
        WithHint(absl::PermissionDeniedError("the kernel hides its symbol addresses"),
                 "run as root with CAP_SYSLOG, and set kernel.kptr_restrict to 0 or 1 (sysctl kernel.kptr_restrict=1)");
    return;
  }
  Store(loading);
}

void KernelSymbols::Store(Loading& loading) {
  using Line = Loading::Line;
  // The kernel's own part is sorted already; modules and BPF programs follow in the order they were loaded.
  const auto by_address = [](const Line& a, const Line& b) {
    return a.address != b.address ? a.address < b.address : a.order < b.order;
  };
  const auto sorted_end = std::is_sorted_until(loading.lines.begin(), loading.lines.end(), by_address);
  std::sort(sorted_end, loading.lines.end(), by_address);
  std::inplace_merge(loading.lines.begin(), sorted_end, loading.lines.end(), by_address);

  rows_.reserve(loading.lines.size());
  size_t name_bytes = 0;
  for (const Line& line : loading.lines) name_bytes += line.name_bytes + 3;
  names_.reserve(name_bytes);
  uint64_t previous = 0;
  for (const Line& line : loading.lines) {
    if (!rows_.empty() && line.address == previous) continue;
    previous = line.address;
    if (blocks_.empty() || line.address - blocks_.back().base > std::numeric_limits<uint32_t>::max()) {
      blocks_.push_back({line.address, static_cast<uint32_t>(rows_.size())});
    }
    rows_.push_back({static_cast<uint32_t>(line.address - blocks_.back().base), static_cast<uint32_t>(names_.size())});
    const uint32_t module = std::min<uint32_t>(line.module, 0xffff);
    names_.push_back(static_cast<char>(module & 0xff));
    names_.push_back(static_cast<char>(module >> 8));
    names_.append(loading.text.data() + line.name, line.name_bytes);
    names_.push_back('\0');
  }
  rows_.shrink_to_fit();
}

size_t KernelSymbols::memory_bytes() const {
  return rows_.capacity() * sizeof(Row) + names_.capacity() + blocks_.capacity() * sizeof(Block);
}

std::optional<Frame> KernelFrame(absl::string_view text, NameStyle style) {
  if (text.empty() || absl::StartsWith(text, "0x") || text.front() == '(') return std::nullopt;
  Frame frame;
  frame.kind = FrameKind::kKernel;
  frame.source = NameSource::kKallsyms;
  frame.module = std::string(kModuleOfKernel);
  frame.text = std::string(text);
  const size_t bracket = text.find(" [");
  if (bracket != absl::string_view::npos && text.back() == ']') {
    frame.module = std::string(text.substr(bracket + 2, text.size() - bracket - 3));
    if (style != NameStyle::kFull) frame.text.resize(bracket);
  } else if (absl::StartsWith(text, "bpf_prog_") || absl::StartsWith(text, "bpf_trampoline_")) {
    frame.module = "bpf";  // "%ps" leaves out what /proc/kallsyms prints
    if (style == NameStyle::kFull) frame.text += " [bpf]";
  }
  if (IsEndMark(text)) return std::nullopt;
  return frame;
}

Frame KernelSymbols::Resolve(uint64_t address) {
  main_loop_.Check();
  if (!loaded_) Load();
  Frame frame;
  frame.kind = FrameKind::kKernel;
  frame.module = std::string(kModuleOfKernel);
  frame.text = "[kernel]";
  const auto block_above = std::upper_bound(blocks_.begin(), blocks_.end(), address,
                                            [](uint64_t at, const Block& block) { return at < block.base; });
  if (block_above == blocks_.begin()) return frame;
  const Block& block = *(block_above - 1);
  const auto first = rows_.begin() + block.first_row;
  const auto last = block_above == blocks_.end() ? rows_.end() : rows_.begin() + block_above->first_row;
  const uint64_t low = address - block.base;
  const auto above = std::upper_bound(first, last, low, [](uint64_t at, const Row& row) { return at < row.low; });
  const Row& row = *(above - 1);  // the first row of a block stands at its base
  const auto number = [&](size_t at) { return static_cast<uint32_t>(static_cast<uint8_t>(names_[row.name + at])); };
  const uint32_t module = number(0) | number(1) << 8;
  const absl::string_view name = names_.c_str() + row.name + 2;
  if (low - row.low >= kMaxFunctionBytes || IsEndMark(name)) return frame;
  frame.source = NameSource::kKallsyms;
  frame.text = std::string(name);
  if (module != 0) {
    frame.module = modules_[module];
    if (style_ == NameStyle::kFull) absl::StrAppend(&frame.text, " [", frame.module, "]");
  }
  return frame;
}

}  // namespace clrsampler
