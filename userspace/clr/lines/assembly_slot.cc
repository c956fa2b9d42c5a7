#include "clr/lines/assembly_slot.h"

namespace clrsampler {

AssemblyLines* AssemblySlot::lines() {
  main_loop_.Check();
  if (files_ == nullptr || asked_at_ == files_->generation()) return lines_.get();
  asked_at_ = files_->generation();
  const SymbolFiles::Answer answer = files_->Get(key_);
  if (answer.state == SymbolFiles::State::kWaiting) return nullptr;
  files_ = nullptr;
  lines_ = open_(answer.file);
  return lines_.get();
}

}  // namespace clrsampler
