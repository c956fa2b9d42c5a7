#include "clr/lines/line_memory.h"

#include "absl/strings/str_cat.h"

namespace clrsampler {

LineMemory::Part::~Part() {
  memory_.bytes_ -= bytes_;
  memory_.by_use_.erase(place_);
}

void LineMemory::Part::Used(size_t bytes) {
  std::list<Part*>& by_use = memory_.by_use_;
  by_use.splice(by_use.end(), by_use, place_);
  memory_.bytes_ += bytes - bytes_;
  bytes_ = bytes;
  for (Part* oldest : by_use) {
    if (memory_.bytes_ <= memory_.max_bytes_ || oldest == this) return;
    if (oldest->bytes_ == 0) continue;
    oldest->Free();
    memory_.bytes_ -= oldest->bytes_;
    oldest->bytes_ = 0;
  }
}

absl::StatusOr<std::shared_ptr<const std::vector<std::byte>>> LineMemory::Keep(std::span<const std::byte> bytes) {
  main_loop_.Check();
  if (bytes.size() > max_bytes_ / 4 - kept_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no room for ", bytes.size(), " more bytes of assemblies that are in no file"));
  }
  kept_ += bytes.size();
  bytes_ += bytes.size();
  return std::shared_ptr<const std::vector<std::byte>>(new std::vector<std::byte>(bytes.begin(), bytes.end()),
                                                       [this](const std::vector<std::byte>* copy) {
                                                         kept_ -= copy->size();
                                                         bytes_ -= copy->size();
                                                         delete copy;
                                                       });
}

}  // namespace clrsampler
