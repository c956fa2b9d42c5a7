#include "process/program_ends.h"

#include <algorithm>
#include <cstddef>

namespace clrsampler {

void ProgramEnds::Add(Listener& listener) { listeners_.push_back(&listener); }

void ProgramEnds::Remove(Listener& listener) {
  main_loop_.Check();
  if (announcing_ == 0) {
    std::erase(listeners_, &listener);
  } else {
    std::replace(listeners_.begin(), listeners_.end(), &listener, static_cast<Listener*>(nullptr));
  }
}

void ProgramEnds::Announce(ProcessKey key) {
  main_loop_.Check();
  ++announcing_;
  const size_t count = listeners_.size();
  for (size_t i = 0; i < count; ++i) {
    if (listeners_[i] != nullptr) listeners_[i]->OnProgramEnd(key);
  }
  if (--announcing_ == 0) std::erase(listeners_, nullptr);
}

}  // namespace clrsampler
