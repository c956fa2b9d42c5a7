// The dictionary of the chapter that is being written. One thread.
#ifndef CLRSAMPLER_STORE_CHAPTER_BUILDER_H_
#define CLRSAMPLER_STORE_CHAPTER_BUILDER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "formats/profile/profile_model.h"
#include "store/chapter_dictionary.h"

namespace clrsampler {

class ChapterBuilder {
 public:
  StringIndex String(absl::string_view text);
  uint32_t Process(const ChapterProcess& process);
  uint32_t Thread(const ChapterThread& thread);
  // For each node of the model the chapter's own. Takes its sources too, without their text.
  std::vector<NodeIndex> Nodes(const ProfileModel& model);

  // What is larger than any dictionary may be has come in: nothing more is taken.
  bool ok() const { return names_.ok(); }
  DictionarySizes sizes() const;
  std::string AdditionSince(const DictionarySizes& begin) const;
  size_t memory_bytes() const;  // about

 private:
  ProfileModelBuilder names_;
  size_t text_bytes_ = 0;
  std::vector<ChapterProcess> processes_;
  std::vector<ChapterThread> threads_;
  absl::flat_hash_map<ChapterProcess, uint32_t> process_ids_;
  absl::flat_hash_map<ChapterThread, uint32_t> thread_ids_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_STORE_CHAPTER_BUILDER_H_
