// Names of kernel addresses: asked of the kernel one by one where that is possible, else from /proc/kallsyms, which is
// read when the first address needs it. Reading it costs 46 ms of CPU for 122,000 lines; a run sees some hundred
// addresses.
#ifndef CLRSAMPLER_SYMBOLS_KERNEL_SYMBOLS_H_
#define CLRSAMPLER_SYMBOLS_KERNEL_SYMBOLS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "formats/names/frame_text.h"
#include "status/thread_checker.h"
#include "symbols/frame.h"

namespace clrsampler {

// The same for all processes, so not a FrameSource. Main loop only.
//
// Text: "do_syscall_64"; kFull adds the module, "nft_do_chain [nf_tables]". BPF programs read "bpf_prog_<tag>_<name>".
// The first of several aliases in the file is taken, which is the kernel's own choice (scripts/kallsyms.c sorts weak,
// linker-made and underscored names behind). Memory: 8 bytes per function and the names, 4.3 MB for 122,000 lines.
class KernelSymbols {
 public:
  // Gives the text of /proc/kallsyms; called at most once per Reload.
  using ReadText = std::function<absl::StatusOr<std::string>()>;
  static absl::StatusOr<std::string> ReadProcKallsyms();

  explicit KernelSymbols(NameStyle style, ReadText read_text = ReadProcKallsyms)
      : style_(style), read_text_(std::move(read_text)) {}

  // Kind kKernel. An address without a name reads "[kernel]".
  Frame Resolve(uint64_t address);

  // Why there are no names, with a hint; OK before the first Resolve and when all is well.
  const absl::Status& status() const { return status_; }

  // Reads again at the next Resolve: BPF programs or modules were loaded.
  void Reload() { loaded_ = false; }

  // Whether it has been read; how much it holds.
  bool loaded() const { return loaded_; }
  size_t size() const { return rows_.size(); }
  size_t memory_bytes() const;

 private:
  struct Row {
    uint32_t low;   // address less that of its block
    uint32_t name;  // offset in names_: module number in two bytes, then the name and a NUL
  };
  // Kernel, modules and BPF programs may lie more than 4 GiB apart.
  struct Block {
    uint64_t base;
    uint32_t first_row;
  };
  struct Loading;
  void Load();
  void Store(Loading& loading);

  NameStyle style_;
  ReadText read_text_;
  bool loaded_ = false;
  absl::Status status_;
  std::vector<Block> blocks_;
  std::vector<Row> rows_;
  std::string names_;
  std::vector<std::string> modules_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

// The frame of what the kernel's "%ps" prints for an address: "vfs_read", "nft_do_chain [nf_tables]". nullopt: the text
// is no name ("0xffff...", "(null)", a mark behind the end of the code).
std::optional<Frame> KernelFrame(absl::string_view text, NameStyle style);

}  // namespace clrsampler

#endif  // CLRSAMPLER_SYMBOLS_KERNEL_SYMBOLS_H_
