#include "capture/probed_function.h"

#include <elf.h>
#include <link.h>

// The first instruction is what decides how the kernel goes on after a trap.
#if defined(__x86_64__)
__asm__(
    ".pushsection .text\n"
    ".globl clrsampler_probed_function\n"
    ".hidden clrsampler_probed_function\n"
    ".type clrsampler_probed_function, @function\n"
    "clrsampler_probed_function:\n"
    "  push %rbp\n"
    "  mov %rsp, %rbp\n"
    "  pop %rbp\n"
    "  ret\n"
    ".size clrsampler_probed_function, . - clrsampler_probed_function\n"
    ".popsection\n");
#elif defined(__aarch64__)
__asm__(
    ".pushsection .text\n"
    ".globl clrsampler_probed_function\n"
    ".hidden clrsampler_probed_function\n"
    ".type clrsampler_probed_function, %function\n"
    "clrsampler_probed_function:\n"
    "  stp x29, x30, [sp, -16]!\n"
    "  mov x29, sp\n"
    "  ldp x29, x30, [sp], 16\n"
    "  ret\n"
    ".size clrsampler_probed_function, . - clrsampler_probed_function\n"
    ".popsection\n");
#endif

namespace clrsampler {

std::optional<uint64_t> ProbedFunctionOffset() {
  struct Search {
    uint64_t address;
    std::optional<uint64_t> offset;
  } search{reinterpret_cast<uint64_t>(&clrsampler_probed_function), std::nullopt};
  const auto look = [](dl_phdr_info* object, size_t, void* data) {
    auto& wanted = *static_cast<Search*>(data);
    for (int i = 0; i < object->dlpi_phnum; ++i) {
      const ElfW(Phdr)& header = object->dlpi_phdr[i];
      const uint64_t begin = object->dlpi_addr + header.p_vaddr;
      if (header.p_type != PT_LOAD || wanted.address < begin || wanted.address - begin >= header.p_filesz) continue;
      wanted.offset = wanted.address - begin + header.p_offset;
    }
    return 1;  // the first object is the program
  };
  dl_iterate_phdr(look, &search);
  return search.offset;
}

}  // namespace clrsampler
