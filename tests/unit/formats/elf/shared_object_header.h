// The header of a made-up shared object, with what is the same in all of them.
#ifndef CLRSAMPLER_TESTS_UNIT_FORMATS_ELF_SHARED_OBJECT_HEADER_H_
#define CLRSAMPLER_TESTS_UNIT_FORMATS_ELF_SHARED_OBJECT_HEADER_H_

#include <elf.h>

#include <cstdint>
#include <cstring>

namespace clrsampler {

// Program headers, if there are any, follow the header.
inline Elf64_Ehdr SharedObjectHeader(uint16_t machine) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_DYN;
  header.e_machine = machine;
  header.e_phoff = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  return header;
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_TESTS_UNIT_FORMATS_ELF_SHARED_OBJECT_HEADER_H_
