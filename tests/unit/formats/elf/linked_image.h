// Small whole images: any sections at any addresses, exports, symbols, relocations and unwind tables, as a linker lays
// them out. For tests of what is read out of several of them together.
#ifndef CLRSAMPLER_TESTS_UNIT_FORMATS_ELF_LINKED_IMAGE_H_
#define CLRSAMPLER_TESTS_UNIT_FORMATS_ELF_LINKED_IMAGE_H_

#include <elf.h>

#include "unit/formats/elf/shared_object_header.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace clrsampler {

template <typename T>
std::string RawBytes(const T& value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

struct LinkedSection {
  std::string name;
  uint32_t type = SHT_PROGBITS;
  uint64_t flags = SHF_ALLOC;
  uint64_t address = 0;
  std::string bytes;
  std::string link;
  uint64_t entry_bytes = 0;
  uint64_t memory_bytes = 0;  // of SHT_NOBITS
};

// Each allocated section becomes a segment of its own, at a file offset that is not its address.
class LinkedImage {
 public:
  explicit LinkedImage(uint16_t machine) : machine_(machine) {}

  LinkedImage& Add(LinkedSection section) {
    sections_.push_back(std::move(section));
    return *this;
  }
  LinkedSection* Find(const std::string& name) {
    const auto found = std::find_if(sections_.begin(), sections_.end(), [&](const auto& s) { return s.name == name; });
    return found == sections_.end() ? nullptr : &*found;
  }
  void Remove(const std::string& name) {
    sections_.erase(
        std::remove_if(sections_.begin(), sections_.end(), [&](const auto& section) { return section.name == name; }),
        sections_.end());
  }

  // The sections NAME and NAME's strings: ".dynsym" and ".dynstr", or ".symtab" and ".strtab".
  struct Symbol {
    std::string name;
    uint64_t address = 0;
    uint64_t bytes = 0;
    uint8_t type = STT_FUNC;
  };
  LinkedImage& AddSymbols(const std::string& name, const std::string& strings_name,
                          const std::vector<Symbol>& symbols) {
    std::string rows = RawBytes(Elf64_Sym{}), strings(1, '\0');
    for (const Symbol& symbol : symbols) {
      Elf64_Sym row{};
      row.st_name = static_cast<uint32_t>(strings.size());
      row.st_info = static_cast<uint8_t>(STB_GLOBAL << 4 | symbol.type);
      row.st_shndx = 1;
      row.st_value = symbol.address;
      row.st_size = symbol.bytes;
      rows += RawBytes(row);
      strings += symbol.name + '\0';
    }
    const uint32_t type = name == ".dynsym" ? SHT_DYNSYM : SHT_SYMTAB;
    Add({.name = name,
         .type = type,
         .flags = 0,
         .bytes = rows,
         .link = strings_name,
         .entry_bytes = sizeof(Elf64_Sym)});
    return Add({.name = strings_name, .type = SHT_STRTAB, .flags = 0, .bytes = strings});
  }

  // .rela.dyn at `address`.
  LinkedImage& AddRelocations(uint64_t address, const std::vector<std::pair<uint64_t, uint64_t>>& slots_and_targets) {
    const uint64_t kind = machine_ == EM_X86_64 ? R_X86_64_RELATIVE : R_AARCH64_RELATIVE;
    std::string rows;
    for (const auto& [slot, target] : slots_and_targets) {
      rows += RawBytes(Elf64_Rela{slot, kind, static_cast<Elf64_Sxword>(target)});
    }
    return Add(
        {.name = ".rela.dyn", .type = SHT_RELA, .address = address, .bytes = rows, .entry_bytes = sizeof(Elf64_Rela)});
  }

  // .eh_frame and .eh_frame_hdr, the latter at `address`, with an FDE for each function, in the order given.
  LinkedImage& AddUnwindTables(uint64_t address, const std::vector<std::pair<uint64_t, uint64_t>>& starts_and_bytes) {
    const uint64_t header_bytes = 12 + 8 * starts_and_bytes.size(), frames_at = address + (header_bytes + 15) / 16 * 16;
    std::string header("\x01\x1b\x03\x3b", 4);
    header += RawBytes(static_cast<int32_t>(frames_at - (address + 4)));
    header += RawBytes(static_cast<uint32_t>(starts_and_bytes.size()));
    // Length, CIE, version, "zR", code and data alignment, return register, one byte of data: pcrel sdata4.
    std::string frames("\x14\0\0\0\0\0\0\0\x01zR\0\x01\x78\x10\x01\x1b\0\0\0\0\0\0\0", 24);
    for (const auto& [start, bytes] : starts_and_bytes) {
      const uint64_t at = frames.size(), begin_at = frames_at + at + 8;
      header +=
          RawBytes(static_cast<int32_t>(start - address)) + RawBytes(static_cast<int32_t>(frames_at + at - address));
      frames += RawBytes(uint32_t{16}) + RawBytes(static_cast<uint32_t>(at + 4));
      frames += RawBytes(static_cast<int32_t>(start - begin_at)) + RawBytes(static_cast<uint32_t>(bytes));
      frames += std::string(4, '\0');
    }
    eh_frame_header_ = address;
    Add({.name = ".eh_frame_hdr", .address = address, .bytes = header});
    return Add({.name = ".eh_frame", .address = frames_at, .bytes = frames});
  }

  LinkedImage& BuildId(const std::string& id) {
    return Add({.name = ".note.gnu.build-id",
                .type = SHT_NOTE,
                .flags = 0,
                .bytes = RawBytes(Elf64_Nhdr{4, static_cast<uint32_t>(id.size()), NT_GNU_BUILD_ID}) +
                         std::string("GNU\0", 4) + id});
  }

  std::string Build() const {
    std::vector<LinkedSection> sections = sections_;
    sections.push_back({.name = ".shstrtab", .type = SHT_STRTAB, .flags = 0});
    std::string names(1, '\0');
    std::vector<Elf64_Shdr> headers(1);
    for (const LinkedSection& section : sections) {
      Elf64_Shdr header{};
      header.sh_name = static_cast<uint32_t>(names.size());
      names += section.name + '\0';
      header.sh_type = section.type;
      header.sh_flags = section.flags;
      header.sh_addr = section.address;
      header.sh_addralign = 4;
      header.sh_entsize = section.entry_bytes;
      for (size_t i = 0; i < sections.size(); ++i) {
        if (!section.link.empty() && sections[i].name == section.link) header.sh_link = static_cast<uint32_t>(i + 1);
      }
      headers.push_back(header);
    }
    sections.back().bytes = names;
    std::vector<Elf64_Phdr> segments;
    size_t allocated = eh_frame_header_ != 0 ? 1 : 0;
    for (const LinkedSection& section : sections) allocated += (section.flags & SHF_ALLOC) != 0 ? 1 : 0;
    std::string image(sizeof(Elf64_Ehdr) + allocated * sizeof(Elf64_Phdr), '\0');
    for (size_t i = 0; i < sections.size(); ++i) {
      const LinkedSection& section = sections[i];
      image.resize((image.size() + 7) / 8 * 8);
      headers[i + 1].sh_offset = image.size();
      headers[i + 1].sh_size = section.type == SHT_NOBITS ? section.memory_bytes : section.bytes.size();
      if ((section.flags & SHF_ALLOC) != 0) {
        const uint32_t access = PF_R | ((section.flags & SHF_EXECINSTR) != 0 ? PF_X : 0);
        segments.push_back({PT_LOAD, access, image.size(), section.address, section.address,
                            section.type == SHT_NOBITS ? 0 : section.bytes.size(), headers[i + 1].sh_size, 8});
      }
      if (section.type != SHT_NOBITS) image += section.bytes;
    }
    if (eh_frame_header_ != 0) {
      segments.push_back({PT_GNU_EH_FRAME, PF_R, 0, eh_frame_header_, eh_frame_header_, 0, 0, 4});
    }
    image.resize((image.size() + 7) / 8 * 8);
    Elf64_Ehdr header = SharedObjectHeader(machine_);
    header.e_phnum = static_cast<uint16_t>(segments.size());
    header.e_shoff = image.size();
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = static_cast<uint16_t>(headers.size());
    header.e_shstrndx = static_cast<uint16_t>(headers.size() - 1);
    image.append(reinterpret_cast<const char*>(headers.data()), headers.size() * sizeof(Elf64_Shdr));
    std::memcpy(image.data(), &header, sizeof header);
    if (!segments.empty()) {
      std::memcpy(image.data() + sizeof header, segments.data(), segments.size() * sizeof(Elf64_Phdr));
    }
    return image;
  }

 private:
  uint16_t machine_;
  uint64_t eh_frame_header_ = 0;
  std::vector<LinkedSection> sections_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_TESTS_UNIT_FORMATS_ELF_LINKED_IMAGE_H_
