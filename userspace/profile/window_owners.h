// The process of a window that a thread of its profiles belongs to.
#ifndef CLRSAMPLER_PROFILE_WINDOW_OWNERS_H_
#define CLRSAMPLER_PROFILE_WINDOW_OWNERS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "profile/window.h"

namespace clrsampler {

// Borrows the window.
class WindowOwners {
 public:
  explicit WindowOwners(const Window& window);

  // An index of Window::processes. A pid that is there twice was reused, and the name and the container of the thread
  // tell then. nullopt: the window does not have the process, or does not tell which of them it is; what is known of it
  // stands in the thread.
  std::optional<size_t> Of(const ProfileModel& model, const ModelThread& thread) const;

 private:
  const Window& window_;
  absl::flat_hash_map<uint32_t, std::vector<size_t>> by_pid_;
};

// A process of which nothing is known but what stands in its threads.
WindowProcess AsProcess(const ProfileModel& model, const ModelThread& thread);

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROFILE_WINDOW_OWNERS_H_
