// Samples of many windows or entries added up to the rows of one profile, without times. Pure.
//
// Bounded. Where there are too many rows, the threads of a process are put together to one (tid 0, no name). If that
// does not help, or there are too many stacks, there is no profile.
#ifndef CLRSAMPLER_PROFILE_SAMPLE_SUMS_H_
#define CLRSAMPLER_PROFILE_SAMPLE_SUMS_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "formats/profile/profile_model.h"

namespace clrsampler {

class SampleSums {
 public:
  struct Limits {
    // With the dictionary of a segment and the answer these are some 64 MB.
    size_t rows = 1 << 18;
    size_t nodes = 1 << 19;
  };
  // The builder is borrowed: threads, stacks and states of the rows are its own.
  SampleSums(ProfileModelBuilder& builder, const Limits& limits) : builder_(builder), limits_(limits) {}

  // Comes before each row, and before what the row needs of the builder. RESOURCE_EXHAUSTED: there are too many
  // distinct stacks.
  absl::Status MakeRoom();
  // False: threads of rows that follow have tid 0 and no name.
  bool by_thread() const { return by_thread_; }
  void Add(ThreadIndex thread, NodeIndex node, SampleState state, uint64_t weight);
  // The builder gets all rows, in an order that the same rows always have.
  void Finish();

 private:
  struct Key {
    ThreadIndex thread;
    NodeIndex node;
    SampleState state;
    friend bool operator==(const Key&, const Key&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& key) {
      return H::combine(std::move(h), key.thread, key.node, key.state);
    }
  };
  void PutThreadsTogether();

  ProfileModelBuilder& builder_;
  const Limits limits_;
  absl::flat_hash_map<Key, uint64_t> rows_;
  bool by_thread_ = true;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROFILE_SAMPLE_SUMS_H_
