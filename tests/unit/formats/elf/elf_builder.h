// Small ELF images made in memory, for layouts that no linker writes.
#ifndef CLRSAMPLER_TESTS_UNIT_FORMATS_ELF_ELF_BUILDER_H_
#define CLRSAMPLER_TESTS_UNIT_FORMATS_ELF_ELF_BUILDER_H_

#include <elf.h>

#include "unit/formats/elf/shared_object_header.h"

#include <cstring>
#include <string>
#include <vector>

namespace clrsampler {

// One executable segment and a .text section at kTextAddress, whose file offset is kTextAddress - kShift; symbols as
// added.
class ElfBuilder {
 public:
  static constexpr uint64_t kTextAddress = 0x2000, kShift = 0x1000, kTextBytes = 0x1000;

  ElfBuilder& Symbol(const std::string& name, uint64_t address, uint64_t size, uint8_t binding = STB_GLOBAL,
                     uint8_t type = STT_FUNC, uint8_t visibility = STV_DEFAULT, uint16_t section = 1) {
    Elf64_Sym symbol{};
    symbol.st_name = static_cast<uint32_t>(strings_.size());
    symbol.st_info = static_cast<uint8_t>(binding << 4 | type);
    symbol.st_other = visibility;
    symbol.st_shndx = section;
    symbol.st_value = address;
    symbol.st_size = size;
    symbols_.push_back(symbol);
    strings_ += name + '\0';
    return *this;
  }
  ElfBuilder& Machine(uint16_t machine) {
    machine_ = machine;
    return *this;
  }

  std::string Build() const {
    std::string image(kTextAddress - kShift + kTextBytes, '\xcc');
    const std::string section_names("\0.text\0.symtab\0.strtab\0.shstrtab\0", 33);
    const uint64_t symbols_at = image.size();
    for (const Elf64_Sym& symbol : symbols_) image.append(reinterpret_cast<const char*>(&symbol), sizeof symbol);
    const uint64_t strings_at = image.size();
    image += strings_;
    const uint64_t names_at = image.size();
    image += section_names;
    image.resize((image.size() + 7) / 8 * 8);
    const Elf64_Shdr sections[] = {
        {},
        {1, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, kTextAddress, kTextAddress - kShift, kTextBytes, 0, 0, 16, 0},
        {7, SHT_SYMTAB, 0, 0, symbols_at, symbols_.size() * sizeof(Elf64_Sym), 3, 0, 8, sizeof(Elf64_Sym)},
        {15, SHT_STRTAB, 0, 0, strings_at, strings_.size(), 0, 0, 1, 0},
        {23, SHT_STRTAB, 0, 0, names_at, section_names.size(), 0, 0, 1, 0}};
    Elf64_Ehdr header = SharedObjectHeader(machine_);
    header.e_phnum = 1;
    header.e_shoff = image.size();
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = 5;
    header.e_shstrndx = 4;
    const Elf64_Phdr segment{PT_LOAD,    PF_R | PF_X, kTextAddress - kShift, kTextAddress, kTextAddress, kTextBytes,
                             kTextBytes, 0x1000};
    image.append(reinterpret_cast<const char*>(sections), sizeof sections);
    std::memcpy(image.data(), &header, sizeof header);
    std::memcpy(image.data() + sizeof header, &segment, sizeof segment);
    return image;
  }

 private:
  uint16_t machine_ = EM_X86_64;
  std::vector<Elf64_Sym> symbols_{Elf64_Sym{}};
  std::string strings_{'\0'};
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_TESTS_UNIT_FORMATS_ELF_ELF_BUILDER_H_
