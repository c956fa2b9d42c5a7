// Files behind executable mappings, opened once for all processes that map the same file.
#ifndef CLRSAMPLER_PROCESS_IMAGE_FILES_H_
#define CLRSAMPLER_PROCESS_IMAGE_FILES_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "os/clock.h"
#include "os/mapped_file.h"
#include "os/tape.h"
#include "process/per_process.h"
#include "process/process.h"
#include "status/thread_checker.h"

namespace clrsampler {

// A mapped image file. Immutable; shared between processes. `bytes` may turn to zeroes when the file is truncated
// (mapped_file.h): check damaged() after parsing.
struct ImageFile {
  std::string path;  // in the mount namespace of the process that was seen first
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t size = 0;
  uint64_t modified_ns = 0;
  // When its owner, mode or content was changed last; nobody can set it. 0: it says nothing of the data (metacopy).
  uint64_t changed_ns = 0;
  bool overlay = false;  // of an overlayfs, which shows one file of a lower layer once a container, under a device each
  MappedFile content;
  mutable std::optional<std::string> hash;  // what ImageFiles::HashOf has said; main loop only

  std::span<const std::byte> bytes() const { return content.bytes(); }
};

// Whether two images are one file: the kernel plants probes there, in the file of the lower layer. Files of two
// overlays that share inode, size, both times and their first page, where headers and build id are, count as one. A
// container that changes only the owner gets a copy of its own, which keeps all of these but the time of change.
bool IsSameFile(const ImageFile& a, const ImageFile& b);

// Tells a file from all others, and from itself with other content. A user can set all of it but the time of change.
std::string IdentityText(const ImageFile& file);

// Main loop only. Files on FUSE and on overlays of users are opened for each process. Failures are remembered too, so
// that a file that can't be opened costs one attempt per mapping. Two failures hold for kAskAgainNs only, and are
// Unavailable. One is that a file system did not answer. The other is that other files take all the room.
class ImageFiles {
 public:
  // A process has a share of MappedFile::kMaxViews, so that it can't take the files of others their room. A composite
  // has some 200 components, a large program a thousand assemblies.
  static constexpr size_t kMaxFilesPerProcess = MappedFile::kMaxViews / 8;
  // With so many failures of a process all of them are forgotten, so a hostile process costs time, not memory.
  static constexpr size_t kMaxFailuresPerProcess = 4096;
  // A file that was Unavailable is tried again after so long. Until then callers may ask as often as they like: a try
  // may take as long as FileBroker waits, and each frame of each sample asks.
  static constexpr uint64_t kAskAgainNs = kSecondNs;
  // The largest file taken: bounds address space, not memory, since pages come in as they are read.
  static constexpr uint64_t kMaxImageBytes = uint64_t{4} << 30;

  // `tape`: as TargetFiles'. `clock` is borrowed; nullptr: the system's.
  explicit ImageFiles(Tape* tape = nullptr, const Clock* clock = nullptr)
      : tape_(tape), clock_(clock != nullptr ? *clock : system_clock_) {}
  ImageFiles(const ImageFiles&) = delete;
  ImageFiles& operator=(const ImageFiles&) = delete;

  const Clock& clock() const { return clock_; }

  absl::StatusOr<std::shared_ptr<const ImageFile>> Get(const Process& process, const Mapping& mapping);

  // A file beside an image (component of a composite, r2rmap, debug file), by its path in the target. Cached by path
  // and process root.
  absl::StatusOr<std::shared_ptr<const ImageFile>> GetByPath(const Process& process, absl::string_view path);

  // A file that is read once, by its path in the target. It is not remembered, and has no share of the process's files.
  absl::StatusOr<std::shared_ptr<const ImageFile>> GetOnce(const Process& process, absl::string_view path);

  // A file of the host (TargetFiles::OpenOnHost), whatever the process sees there. Not remembered.
  absl::StatusOr<std::shared_ptr<const ImageFile>> GetOnHost(const Process& process, const std::string& path);

  // HeadTailLengthHash (os/digest.h) of a file: reads two of its pages. Empty: it was truncated meanwhile, or there is
  // a tape, which has the pages that names need and no other.
  std::string HashOf(const ImageFile& file);

  // The vDSO, the same in every 64-bit process; empty: there is none.
  std::span<const std::byte> Vdso();

 private:
  struct Identity {
    uint64_t device, inode, size, modified_ns, changed_ns;
    friend bool operator==(const Identity&, const Identity&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Identity& id) {
      return H::combine(std::move(h), id.device, id.inode, id.size, id.modified_ns, id.changed_ns);
    }
  };
  using Result = absl::StatusOr<std::shared_ptr<const ImageFile>>;
  struct Known {
    Result result;
    MonotonicTime again = MonotonicTime::Max();  // when it is tried again
  };
  struct OfProcess {
    absl::flat_hash_map<std::string, Known> answers;
    size_t files = 0;  // good ones among them; the rest are failures
    size_t failures() const { return answers.size() - files; }
  };
  void Remember(OfProcess& known, absl::string_view key, const Result& result);
  std::weak_ptr<const ImageFile>& SlotOf(const Identity& identity);
  Result Share(absl::StatusOr<OpenedFile> opened, absl::string_view path);
  // `open`: what is done where there is no answer for `key` that still holds.
  Result Remembered(const Process& process, absl::string_view key, absl::string_view path,
                    absl::FunctionRef<absl::StatusOr<OpenedFile>()> open);

  Tape* tape_;
  const SystemClock system_clock_;
  const Clock& clock_;
  std::optional<std::vector<std::byte>> vdso_;
  absl::flat_hash_map<Identity, std::weak_ptr<const ImageFile>> by_identity_;
  size_t purge_at_ = 64;  // entries at which those of files that nobody uses any more are removed
  PerProcess<OfProcess> by_process_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROCESS_IMAGE_FILES_H_
