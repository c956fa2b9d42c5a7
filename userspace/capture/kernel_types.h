// The kernel's types that a BPF object is relocated against, as a small file for libbpf, which else loads all of them.
#ifndef CLRSAMPLER_CAPTURE_KERNEL_TYPES_H_
#define CLRSAMPLER_CAPTURE_KERNEL_TYPES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "os/unique_fd.h"
#include "status/thread_checker.h"

struct btf;

namespace clrsampler {

// A file in memory. libbpf wants its path when it opens an object and reads it when it loads that; what has to be in it
// is known in between. Main loop only.
class KernelTypes {
 public:
  static absl::StatusOr<KernelTypes> Create();

  const std::string& path() const { return path_; }  // for bpf_object_open_opts::btf_custom_path

  // Writes what `object` can ask about. With an error libbpf can't use the file, but may be able to do without.
  absl::Status Fill(const btf* object);

 private:
  explicit KernelTypes(UniqueFd file);

  UniqueFd file_;
  std::string path_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CAPTURE_KERNEL_TYPES_H_
