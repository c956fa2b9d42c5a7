// The answer about an address at a time: the frame that people read, and how we know.
#ifndef CLRSAMPLER_SYMBOLS_FRAME_H_
#define CLRSAMPLER_SYMBOLS_FRAME_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"
#include "formats/names/async_body.h"
#include "os/clock.h"
#include "status/thread_checker.h"
#include "symbols/image_ref.h"
#include "symbols/source_place.h"

namespace clrsampler {

enum class FrameKind : uint8_t {
  kKernel,
  kNative,  // ELF code: the runtime, libc, the program of a native process
  kJit,     // code compiled in the process, runtime stubs included
  kR2r,     // precompiled managed code
  kAot,     // managed code of a NativeAOT program: an ELF image
  kMark,    // no code: a word about the stack at that place, like "[caller may be missing]"
  kRole,    // no code: what the runtime's frames below it are for, like "[gc gen1 blocking]"
  kType,    // no code: of what type the object is that its caller allocates or throws
};
constexpr size_t kFrameKinds = 8;

// Whether it is code that a .NET compiler made, named or not.
constexpr bool IsManaged(FrameKind kind) {
  return kind == FrameKind::kJit || kind == FrameKind::kR2r || kind == FrameKind::kAot;
}

// The source that named the frame. kNone: nobody could, and Frame::text says why in brackets.
enum class NameSource : uint8_t {
  kNone,
  kKallsyms,
  kElfSymbols,     // .symtab, .dynsym, separate debug file
  kFunctionStart,  // .eh_frame_hdr: the function is known, its name is not
  kJitdump,
  kPerfMap,
  kR2rMap,
  kR2rImage,  // the image's own tables and metadata
  kRuntimeMemory,
  kRuntimeTable,  // of a stripped .NET runtime: a table in its image names the function
  kRuntimeEvent,  // an event that the runtime sent has the text
};
constexpr int kNameSourceCount = 11;
absl::string_view NameSourceText(NameSource source);  // "jitdump", as --stats writes it

struct Frame {
  FrameKind kind = FrameKind::kNative;
  NameSource source = NameSource::kNone;
  std::string text;    // in the chosen name style, without folded-format annotations; sanitised by the writer
  std::string module;  // file name of the image or simple assembly name; may be empty
  std::string tier;    // of managed code, the runtime's word; may be empty
  // For tools that build the image again. Empty or 0 where they are not known or the frame is no code.
  std::string symbol = {};  // what the linker calls it, "_ZN4Shop5TotalEv"; of managed methods MethodSymbol
  ImageRef image = {};
  uint64_t address = 0;          // of its first byte in the image: as linked (ELF), from the image's start (PE)
  uint32_t size = 0;             // bytes of code from there
  MethodIdentity identity = {};  // of managed methods, in the short style alone: there bodies of one method are one
  SourcePlace place = {};        // where lines are asked for: each line of a method is a frame of its own

  bool named() const { return source != NameSource::kNone; }
  friend bool operator==(const Frame&, const Frame&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Frame& f) {
    return H::combine(std::move(h), f.kind, f.source, f.text, f.module, f.tier, f.symbol, f.image, f.address, f.size,
                      f.identity.key, f.identity.body, f.place);
  }
};
inline bool IsManaged(const Frame& frame) { return IsManaged(frame.kind); }

using FrameId = uint32_t;

// A table takes so much more, and has taken so much.
struct FrameRoom {
  size_t left = 0;  // bytes, about
  size_t used = 0;
  bool refused = false;  // some frame
};

// Interned frames of one run. Grows with the distinct frames that samples hit, some thousands; NameBudget bounds what a
// process can add. Main loop only.
class FrameTable {
 public:
  // A longer text of a frame is cut, and ends in U+2026 (folded output cuts at 1 KiB). A longer symbol is left out.
  static constexpr size_t kMaxTextBytes = 4096;

  // A frame that is not known yet needs room. Without it the answer is a refusal, which says so as a frame. Those who
  // keep answers keep no refusal, since other processes and later times may have room.
  FrameId Intern(Frame frame);
  // A frame of our own words, of which there are few. It needs no room.
  FrameId InternOwn(Frame frame);
  bool IsRefusal(FrameId id) const { return refusals_[static_cast<size_t>(at(id).kind)] == id; }
  // The room for new frames from now on; nullptr: there is no bound. Returns the former one.
  FrameRoom* SetRoom(FrameRoom* room);
  bool HasRoom() const { return room_ == nullptr || room_->left > 0; }
  const Frame& at(FrameId id) const { return *frames_[id]; }
  size_t size() const { return frames_.size(); }
  size_t bytes() const { return bytes_; }  // of memory, about

 private:
  struct ByValueHash {
    size_t operator()(const Frame* frame) const { return absl::HashOf(*frame); }
  };
  struct ByValueEqual {
    bool operator()(const Frame* a, const Frame* b) const { return *a == *b; }
  };
  FrameId Refuse(FrameKind kind);

  std::vector<std::unique_ptr<const Frame>> frames_;
  absl::flat_hash_map<const Frame*, FrameId, ByValueHash, ByValueEqual> ids_;
  size_t bytes_ = 0;
  FrameRoom* room_ = nullptr;
  std::array<std::optional<FrameId>, kFrameKinds> refusals_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

// An answer and the times for which it holds: a later question about the same address inside [from, until) has the same
// answer as long as the source's generation is the same.
struct Resolution {
  FrameId frame = 0;
  MonotonicTime from = MonotonicTime::Min();
  MonotonicTime until = MonotonicTime::Max();
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_SYMBOLS_FRAME_H_
