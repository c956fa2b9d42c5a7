// An r2rmap that was proven to belong to an image: rows by address, texts left in the file.
#ifndef CLRSAMPLER_CLR_R2R_MAP_FILE_H_
#define CLRSAMPLER_CLR_R2R_MAP_FILE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "formats/pe/r2r_image.h"
#include "process/image_files.h"

namespace clrsampler {

class R2rMapFile {
 public:
  // FailedPrecondition: the map is of another image. The signature alone does not prove the addresses. It is made from
  // the modules' ids, so the same sources compiled with other options, or a framework image compiled again, have the
  // same one. The proof is that every row begins where a runtime function of the image does. The rows of false pairs do
  // in 11 % of the cases (System.Linq 10.0.14 against its recompiled self), those of true pairs always.
  static absl::StatusOr<R2rMapFile> Check(std::shared_ptr<const ImageFile> file, const R2rImage& image);

  // The name column of the row that begins at this address; nullopt: none.
  std::optional<absl::string_view> RowAt(uint32_t rva) const;
  bool damaged() const { return file_->content.damaged(); }
  size_t heap_bytes() const { return rows_.capacity() * sizeof(Row); }

 private:
  struct Row {
    uint32_t rva;
    uint32_t offset;  // of the name in the file
    uint32_t bytes;
  };
  std::shared_ptr<const ImageFile> file_;
  std::vector<Row> rows_;  // sorted by rva
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_R2R_MAP_FILE_H_
