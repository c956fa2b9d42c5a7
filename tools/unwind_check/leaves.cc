// How leaves of an ELF image in a file are left, through the profiler's own source of unwind data.
#include <cinttypes>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "formats/elf/elf_image.h"
#include "unwind_check.h"
#include "unwind_data/elf_unwind_data.h"

namespace clrsampler {
namespace {

// What tests/e2e/native_aot_unwind_test.py reads: the CFA and the place of rbp as `sp+N`, `fp+N`, `cfa-N`, `same`.
std::string Text(const CfiRow& row) {
  if (row.ra != RegisterRule::kAtCfaOffset || row.ra_offset != -8) return "other";
  if (row.cfa != CfaRule::kSpOffset && row.cfa != CfaRule::kFpOffset) return "other";
  const std::string frame = absl::StrCat(row.cfa == CfaRule::kSpOffset ? "sp+" : "fp+", row.cfa_offset);
  if (row.fp == RegisterRule::kSame) return frame + " same";
  if (row.fp == RegisterRule::kAtCfaOffset) return absl::StrCat(frame, " cfa-", -row.fp_offset);
  return "other";
}

}  // namespace

int CheckLeaves(const std::string& path) {
  const std::optional<Mapping> mapping = WholeFile(path);
  if (!mapping) return 1;
  const Process process = ProcessOfFiles();
  ImageFiles images;
  ElfUnwindData unwind_data(images);
  const auto file = images.Get(process, *mapping);
  const auto image = file.ok() ? ElfImage::Parse((*file)->bytes()) : absl::StatusOr<ElfImage>(file.status());
  if (!image.ok()) {
    std::printf("%s: %s\n", path.c_str(), std::string(image.status().message()).c_str());
    return 1;
  }
  uint64_t address = 0;
  while (std::scanf("%" SCNx64, &address) == 1) {
    const std::optional<FileOffset> offset = image->ToOffset({address});
    const CodeAt code =
        offset ? unwind_data.Find(process, *mapping, mapping->start + offset->value) : CodeAt{.mapped = false};
    std::printf("%" PRIx64 " %s %s\n", address, code.has_leaf_row ? "leaf" : "table",
                code.has_row ? Text(code.has_leaf_row ? code.leaf_row : code.row).c_str() : "none");
  }
  return 0;
}

}  // namespace clrsampler
