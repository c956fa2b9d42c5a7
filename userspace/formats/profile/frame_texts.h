// A frame whose texts stand in another table of strings.
#ifndef CLRSAMPLER_FORMATS_PROFILE_FRAME_TEXTS_H_
#define CLRSAMPLER_FORMATS_PROFILE_FRAME_TEXTS_H_

#include "formats/profile/profile_model.h"

namespace clrsampler {

// `renumber` gives the index of a text in the new table. It is asked in the order of the members, because tables number
// texts as they come.
template <typename Renumber>
ModelFrame WithTexts(ModelFrame frame, Renumber&& renumber) {
  for (StringIndex ModelFrame::*text :
       {&ModelFrame::name, &ModelFrame::system_name, &ModelFrame::source, &ModelFrame::module, &ModelFrame::module_path,
        &ModelFrame::build_id, &ModelFrame::file_hash, &ModelFrame::tier, &ModelFrame::source_file}) {
    frame.*text = renumber(frame.*text);
  }
  return frame;
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_PROFILE_FRAME_TEXTS_H_
