// The file that the code of a frame is in. All frames of a file share it.
#ifndef CLRSAMPLER_SYMBOLS_IMAGE_REF_H_
#define CLRSAMPLER_SYMBOLS_IMAGE_REF_H_

#include <memory>
#include <string>
#include <utility>

namespace clrsampler {

// Texts are empty where they are not known.
struct ImageIdentity {
  std::string path = {};       // as the process sees it
  std::string build_id = {};   // hexadecimal
  std::string file_hash = {};  // HeadTailLengthHash (os/digest.h)

  friend bool operator==(const ImageIdentity&, const ImageIdentity&) = default;
};

// Compares by value. Without an image it leads to an empty identity.
class ImageRef {
 public:
  ImageRef() = default;
  explicit ImageRef(ImageIdentity identity) : identity_(std::make_shared<const ImageIdentity>(std::move(identity))) {}

  const ImageIdentity& operator*() const {
    static const auto* none = new ImageIdentity();
    return identity_ ? *identity_ : *none;
  }
  const ImageIdentity* operator->() const { return &**this; }

  friend bool operator==(const ImageRef& a, const ImageRef& b) { return a.identity_ == b.identity_ || *a == *b; }
  template <typename H>
  friend H AbslHashValue(H h, const ImageRef& image) {
    return H::combine(std::move(h), image->path, image->build_id, image->file_hash);
  }

 private:
  std::shared_ptr<const ImageIdentity> identity_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_SYMBOLS_IMAGE_REF_H_
