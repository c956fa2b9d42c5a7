#include "capture/kernel_types.h"

#include <bpf/btf.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/btf/btf_subset.h"
#include "formats/byte_reader.h"
#include "os/file_io.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr char kAllTypes[] = "/sys/kernel/btf/vmlinux";
constexpr size_t kMaxBytes = 256 << 20;  // a kernel of a distribution has 5 MB

// This is the kernel's own memory, without a copy. It works since 6.16, and only as a private mapping
// (kernel/bpf/sysfs_btf.c).
class MappedTypes {
 public:
  explicit MappedTypes(int fd) {
    struct stat status {};
    if (fstat(fd, &status) != 0 || status.st_size <= 0 || static_cast<uint64_t>(status.st_size) > kMaxBytes) return;
    const size_t size = static_cast<size_t>(status.st_size);
    void* const map = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map != MAP_FAILED) bytes_ = {static_cast<const std::byte*>(map), size};
  }
  MappedTypes(const MappedTypes&) = delete;
  MappedTypes& operator=(const MappedTypes&) = delete;
  ~MappedTypes() {
    if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  }
  std::span<const std::byte> bytes() const { return bytes_; }  // empty: it can't be mapped

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace

KernelTypes::KernelTypes(UniqueFd file) : file_(std::move(file)), path_(absl::StrCat("/proc/self/fd/", file_.get())) {}

absl::StatusOr<KernelTypes> KernelTypes::Create() {
  UniqueFd file(memfd_create("kernel types", MFD_CLOEXEC));
  if (!file.valid()) return ErrnoError(errno, "memfd_create");
  return KernelTypes(std::move(file));
}

absl::Status KernelTypes::Fill(const btf* object) {
  main_loop_.Check();
  uint32_t size = 0;
  const void* const own = btf__raw_data(object, &size);
  if (own == nullptr) return absl::ResourceExhaustedError("no memory for the object's types");
  const auto names = BtfTypeNames({static_cast<const std::byte*>(own), size});
  RETURN_IF_ERROR(names.status());
  ASSIGN_OR_RETURN(const UniqueFd all, OpenForReading(kAllTypes));
  const MappedTypes mapped(all.get());
  std::string copied;
  std::span<const std::byte> types = mapped.bytes();
  if (types.empty()) {
    ASSIGN_OR_RETURN(copied, ReadWholeFile(all.get(), kMaxBytes));
    types = AsBytes(copied);
  }
  ASSIGN_OR_RETURN(const std::vector<std::byte> subset, BtfSubset(types, *names));
  return WriteAll(file_.get(), AsText(subset));
}

}  // namespace clrsampler
