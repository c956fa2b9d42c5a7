#include "formats/elf/elf_exports.h"

#include <elf.h>

#include <algorithm>
#include <cstdint>

#include "formats/byte_reader.h"

namespace clrsampler {
namespace {

constexpr uint64_t kHeaderBytes = 16;  // bucket count, first hashed symbol, Bloom words, Bloom shift

uint32_t GnuHash(absl::string_view name) {
  uint32_t hash = 5381;
  for (const char c : name) hash = hash * 33 + static_cast<unsigned char>(c);
  return hash;
}

}  // namespace

ElfExports::ElfExports(const ElfImage& image) : symbols_(image.dynsym()) {
  if (!symbols_) return;
  for (const ElfSection& section : image.sections()) {
    if (section.type != SHT_GNU_HASH || section.link == 0 || section.link > image.sections().size()) continue;
    // It must be the table of these very symbols: indexes mean nothing in another.
    const ElfSection& of = image.sections()[section.link - 1];
    const auto symbols = image.SectionBytes(of);
    if (of.type != SHT_DYNSYM || !symbols || symbols->data() != symbols_->symbols.data()) continue;
    if (const auto bytes = image.SectionBytes(section)) hash_ = *bytes;
    return;
  }
}

std::optional<ElfSymbol> ElfExports::Find(absl::string_view name) const {
  if (!symbols_) return std::nullopt;
  if (!hash_.empty()) return FindByHash(name);
  for (size_t i = 0; i < std::min(symbols_->size(), kMaxSteps); ++i) {
    if (const auto symbol = Accept(i, name)) return symbol;
  }
  return std::nullopt;
}

std::optional<ElfSymbol> ElfExports::FindByHash(absl::string_view name) const {
  const auto buckets = LoadAt<uint32_t>(hash_, 0), first = LoadAt<uint32_t>(hash_, 4);
  const auto bloom_words = LoadAt<uint32_t>(hash_, 8), bloom_shift = LoadAt<uint32_t>(hash_, 12);
  if (!bloom_shift || *buckets == 0 || *bloom_words == 0) return std::nullopt;
  const uint32_t hash = GnuHash(name);

  const auto word = LoadAt<uint64_t>(hash_, kHeaderBytes + uint64_t{(hash / 64) % *bloom_words} * 8);
  if (!word) return std::nullopt;
  const uint64_t wanted = uint64_t{1} << (hash % 64) | uint64_t{1} << ((hash >> (*bloom_shift & 31)) % 64);
  if ((*word & wanted) != wanted) return std::nullopt;

  const uint64_t buckets_at = kHeaderBytes + uint64_t{*bloom_words} * 8;
  const uint64_t chains_at = buckets_at + uint64_t{*buckets} * 4;
  const auto start = LoadAt<uint32_t>(hash_, buckets_at + uint64_t{hash % *buckets} * 4);
  if (!start || *start < *first) return std::nullopt;
  uint64_t index = *start;
  for (size_t step = 0; step < kMaxSteps; ++step, ++index) {
    const auto entry = LoadAt<uint32_t>(hash_, chains_at + (index - *first) * 4);
    if (!entry) return std::nullopt;
    if ((*entry | 1) == (hash | 1)) {
      if (const auto symbol = Accept(index, name)) return symbol;
    }
    if ((*entry & 1) != 0) return std::nullopt;
  }
  return std::nullopt;
}

std::optional<ElfSymbol> ElfExports::Accept(size_t index, absl::string_view name) const {
  if (index >= symbols_->size()) return std::nullopt;
  const ElfSymbol symbol = symbols_->At(index);
  if (symbol.section == SHN_UNDEF || symbols_->NamePrefix(symbol.name, name.size() + 1) != name) return std::nullopt;
  return symbol;
}

}  // namespace clrsampler
