// The warnings of libbpf while it works, kept for error messages instead of going to standard error.
#ifndef CLRSAMPLER_CAPTURE_LIBBPF_LOG_H_
#define CLRSAMPLER_CAPTURE_LIBBPF_LOG_H_

#include <bpf/libbpf.h>

#include <string>

namespace clrsampler {

// Collects libbpf's output from construction to destruction; then the previous receiver has it again. libbpf has one
// receiver per process: nest, but do not use on two threads.
class LibbpfLog {
 public:
  LibbpfLog();
  LibbpfLog(const LibbpfLog&) = delete;
  LibbpfLog& operator=(const LibbpfLog&) = delete;
  ~LibbpfLog();

  // At most the last 64 KiB.
  const std::string& text() const { return text_; }
  // The last `lines` lines that are not empty: with a refused program, the verifier's verdict.
  std::string Tail(int lines) const;

 private:
  static int Receive(libbpf_print_level level, const char* format, va_list arguments);

  std::string text_;
  LibbpfLog* outer_;
  libbpf_print_fn_t previous_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CAPTURE_LIBBPF_LOG_H_
