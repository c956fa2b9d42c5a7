// Small images with unwind tables made byte by byte, for what no compiler writes.
#ifndef CLRSAMPLER_TESTS_UNIT_FORMATS_ELF_FRAME_BUILDER_H_
#define CLRSAMPLER_TESTS_UNIT_FORMATS_ELF_FRAME_BUILDER_H_

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
std::string Raw(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

inline std::string Uleb(uint64_t value) {
  std::string text;
  do {
    const uint8_t low = value & 0x7f;
    value >>= 7;
    text.push_back(static_cast<char>(low | (value != 0 ? 0x80 : 0)));
  } while (value != 0);
  return text;
}

inline std::string Sleb(int64_t value) {
  std::string text;
  while (true) {
    const uint8_t low = value & 0x7f;
    value >>= 7;
    const bool last = (value == 0 && (low & 0x40) == 0) || (value == -1 && (low & 0x40) != 0);
    text.push_back(static_cast<char>(low | (last ? 0 : 0x80)));
    if (last) return text;
  }
}

inline std::string Block(const std::string& bytes) { return Uleb(bytes.size()) + bytes; }

// The instructions that tests need, by their names in the standard.
namespace cfa {
inline std::string Advance(uint8_t factored) { return std::string(1, static_cast<char>(0x40 | factored)); }
inline std::string Advance4(uint32_t factored) { return "\x04" + Raw(factored); }
inline std::string Offset(uint8_t reg, uint64_t factored) {
  return std::string(1, static_cast<char>(0x80 | reg)) + Uleb(factored);
}
inline std::string Restore(uint8_t reg) { return std::string(1, static_cast<char>(0xc0 | reg)); }
inline std::string Undefined(uint64_t reg) { return "\x07" + Uleb(reg); }
inline std::string SameValue(uint64_t reg) { return "\x08" + Uleb(reg); }
inline std::string Register(uint64_t reg, uint64_t in) { return "\x09" + Uleb(reg) + Uleb(in); }
inline std::string Remember() { return "\x0a"; }
inline std::string RestoreState() { return "\x0b"; }
inline std::string DefCfa(uint64_t reg, uint64_t offset) { return "\x0c" + Uleb(reg) + Uleb(offset); }
inline std::string DefCfaRegister(uint64_t reg) { return "\x0d" + Uleb(reg); }
inline std::string DefCfaOffset(uint64_t offset) { return "\x0e" + Uleb(offset); }
inline std::string DefCfaExpression(const std::string& bytes) { return "\x0f" + Block(bytes); }
inline std::string Expression(uint64_t reg, const std::string& bytes) { return "\x10" + Uleb(reg) + Block(bytes); }
inline std::string ValExpression(uint64_t reg, const std::string& bytes) { return "\x16" + Uleb(reg) + Block(bytes); }
inline std::string NegateRaState() { return "\x2d"; }
inline std::string GnuArgsSize(uint64_t bytes) { return "\x2e" + Uleb(bytes); }
inline std::string Breg(uint8_t reg, int64_t offset) {
  return std::string(1, static_cast<char>(0x70 + reg)) + Sleb(offset);
}
}  // namespace cfa

// Entries of one section, and the image around them: tables in a segment at kFrames, code in a segment at kCode.
class FrameBuilder {
 public:
  static constexpr uint64_t kFrames = 0x10000, kCode = 0x400000, kCodeBytes = 0x10000;
  static constexpr uint8_t kPcRel4 = 0x1b;

  enum class Section { kEhFrame, kDebugFrame };

  struct Common {
    std::string augmentation = "zR";
    std::string data = std::string(1, static_cast<char>(kPcRel4));
    uint64_t code_alignment = 1;
    int64_t data_alignment = -8;
    uint64_t return_register = 16;
    uint8_t version = 1;
    std::string instructions = cfa::DefCfa(7, 8) + cfa::Offset(16, 1);
  };

  explicit FrameBuilder(Section section = Section::kEhFrame, bool long_entries = false)
      : debug_(section == Section::kDebugFrame), long_(long_entries) {}

  // The offset of the entry in the section.
  uint64_t AddCommon(const Common& common) {
    std::string body(1, static_cast<char>(common.version));
    body += common.augmentation + '\0';
    if (common.version == 4) body += std::string("\x08\0", 2);
    if (common.augmentation == "eh") body += Raw(uint64_t{0});
    body += Uleb(common.code_alignment) + Sleb(common.data_alignment) + Uleb(common.return_register);
    if (common.augmentation.starts_with('z')) body += Block(common.data);
    body += common.instructions;
    has_data_ = common.augmentation.starts_with('z');
    absolute_ = !has_data_;
    return AddEntry(debug_ ? ~uint64_t{0} : 0, body, /*is_common=*/true);
  }
  uint64_t AddCommon() { return AddCommon(Common()); }

  uint64_t AddFunction(uint64_t common_at, uint64_t start, uint64_t bytes, const std::string& instructions) {
    const uint64_t at = bytes_.size();
    std::string body;
    if (absolute_) {
      body = Raw(start) + Raw(bytes);
    } else {
      const uint64_t place = kFrames + at + (long_ ? 12 : 4) + (debug_ && long_ ? 8 : 4);
      body = Raw(static_cast<uint32_t>(start - place)) + Raw(static_cast<uint32_t>(bytes));
    }
    if (has_data_) body += Block("");
    body += instructions;
    functions_.emplace_back(start, kFrames + at);
    return AddEntry(common_at, body, /*is_common=*/false);
  }

  FrameBuilder& Append(const std::string& bytes) {
    bytes_ += bytes;
    return *this;
  }
  FrameBuilder& Machine(uint16_t machine) {
    machine_ = machine;
    return *this;
  }
  FrameBuilder& Code(uint64_t address, const std::string& code) {
    code_.emplace_back(address, code);
    return *this;
  }
  // A section header for code that is there already.
  FrameBuilder& CodeSection(const std::string& name, uint64_t address, uint64_t bytes) {
    code_sections_.push_back({name, address, bytes});
    return *this;
  }
  FrameBuilder& SectionFlags(uint64_t flags) {
    flags_ = flags;
    return *this;
  }
  std::string& bytes() { return bytes_; }

  // `with_header`: an .eh_frame_hdr of all functions added.
  std::string Build(bool with_header = true) const {
    const uint64_t frames_at = 0x1000;
    std::string image(frames_at, '\0');
    image += bytes_;
    image.resize((image.size() + 7) / 8 * 8);
    const uint64_t header_at = image.size(), header_address = kFrames + header_at - frames_at;
    image += Header(header_address);
    image.resize((image.size() + 0xfff) / 0x1000 * 0x1000);
    const uint64_t frames_bytes = image.size() - frames_at, code_at = image.size();
    std::string code(kCodeBytes, '\x90');
    for (const auto& [address, text] : code_) code.replace(address - kCode, text.size(), text);
    image += code;
    const uint64_t names_at = image.size();
    std::string names("\0.eh_frame\0.debug_frame\0.shstrtab\0", 34);
    std::vector<Elf64_Shdr> sections = {
        {}, {debug_ ? 11u : 1u, SHT_PROGBITS, flags_, debug_ ? 0 : kFrames, frames_at, bytes_.size(), 0, 0, 8, 0}, {}};
    for (const CodeSectionHeader& one : code_sections_) {
      sections.push_back({static_cast<uint32_t>(names.size()), SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, one.address,
                          code_at + (one.address - kCode), one.bytes, 0, 0, 16, 0});
      names += one.name + '\0';
    }
    sections[2] = {24, SHT_STRTAB, 0, 0, names_at, names.size(), 0, 0, 1, 0};
    image += names;
    image.resize((image.size() + 7) / 8 * 8);
    Elf64_Ehdr header = SharedObjectHeader(machine_);
    header.e_shoff = image.size();
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = static_cast<uint16_t>(sections.size());
    header.e_shstrndx = 2;
    const Elf64_Phdr segments[] = {{PT_LOAD, PF_R, frames_at, kFrames, kFrames, frames_bytes, frames_bytes, 0x1000},
                                   {PT_LOAD, PF_R | PF_X, code_at, kCode, kCode, kCodeBytes, kCodeBytes, 0x1000},
                                   {PT_GNU_EH_FRAME, PF_R, header_at, header_address, header_address, 0, 0, 4}};
    header.e_phnum = with_header ? 3 : 2;
    image.append(reinterpret_cast<const char*>(sections.data()), sections.size() * sizeof(Elf64_Shdr));
    std::memcpy(image.data(), &header, sizeof header);
    std::memcpy(image.data() + sizeof header, segments, sizeof segments);
    return image;
  }

 private:
  uint64_t AddEntry(uint64_t id, const std::string& body, bool is_common) {
    const uint64_t at = bytes_.size();
    const size_t id_bytes = debug_ && long_ ? 8 : 4;
    const uint64_t id_at = at + (long_ ? 12 : 4);
    if (!debug_ && !is_common) id = id_at - id;
    const uint64_t length = id_bytes + body.size();
    bytes_ += long_ ? Raw(uint32_t{0xffffffff}) + Raw(length) : Raw(static_cast<uint32_t>(length));
    bytes_ += id_bytes == 8 ? Raw(id) : Raw(static_cast<uint32_t>(id));
    bytes_ += body;
    return at;
  }

  std::string Header(uint64_t address) const {
    std::string text("\x01\x1b\x03\x3b", 4);
    text += Raw(static_cast<uint32_t>(kFrames - (address + 4))) + Raw(static_cast<uint32_t>(functions_.size()));
    std::vector<std::pair<uint64_t, uint64_t>> rows = functions_;
    std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [start, entry] : rows) {
      text += Raw(static_cast<int32_t>(start - address)) + Raw(static_cast<int32_t>(entry - address));
    }
    return text;
  }

  struct CodeSectionHeader {
    std::string name;
    uint64_t address, bytes;
  };

  bool debug_, long_;
  bool has_data_ = true, absolute_ = false;
  uint16_t machine_ = EM_X86_64;
  uint64_t flags_ = SHF_ALLOC;
  std::string bytes_;
  std::vector<std::pair<uint64_t, uint64_t>> functions_;  // start, address of the FDE
  std::vector<std::pair<uint64_t, std::string>> code_;
  std::vector<CodeSectionHeader> code_sections_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_TESTS_UNIT_FORMATS_ELF_FRAME_BUILDER_H_
