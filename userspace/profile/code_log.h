// Machine code of the methods that a recording met, and how many samples were taken at each instruction.
//
// How to drive it: Note for each address whose frame has been found, then Count for each sample.
#ifndef CLRSAMPLER_PROFILE_CODE_LOG_H_
#define CLRSAMPLER_PROFILE_CODE_LOG_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "process/process_key.h"
#include "status/thread_checker.h"
#include "symbols/code_source.h"
#include "symbols/frame.h"

namespace clrsampler {

// Main loop only. Nothing is given back before the end: what has ended is a part of the recording.
class CodeLog {
 public:
  struct Entry {
    uint32_t pid = 0;
    FrameId frame = 0;  // without a line
    MonotonicTime met;  // first
    CodeBody code;
    std::map<uint32_t, uint64_t> self;  // samples by offset
  };

  // `plain`: the frame of the address without its line; `frame`: the one that samples have.
  void Note(const FrameQuery& query, FrameId plain, FrameId frame, const CodeBody& body);
  // There is a method, and its code could not be had.
  void NoteWithout() { ++without_; }
  // A sample was taken at the address. Without effect where Note was told of no code there with that frame.
  void Count(ProcessKey process, uint64_t lookup_address, FrameId frame);

  const std::deque<Entry>& entries() const { return entries_; }
  std::map<std::string, uint64_t> CountersByName() const;  // as --stats writes them

 private:
  // 40 MB. A busy host of 500 services meets some 300,000 addresses in an hour.
  static constexpr size_t kMaxAddresses = 1 << 20;

  std::deque<Entry> entries_;
  absl::flat_hash_map<std::tuple<ProcessKey, uint64_t, FrameId>, size_t> by_start_;    // the newest of each
  absl::flat_hash_map<std::tuple<ProcessKey, uint64_t, FrameId>, size_t> by_address_;  // with the frame of samples
  uint64_t bytes_ = 0;
  uint64_t without_ = 0;   // addresses
  uint64_t left_out_ = 0;  // likewise: there was no room
  uint64_t counted_ = 0;   // samples
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROFILE_CODE_LOG_H_
