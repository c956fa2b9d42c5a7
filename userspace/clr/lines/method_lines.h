// The way from a compiled method's code to its lines.
#ifndef CLRSAMPLER_CLR_LINES_METHOD_LINES_H_
#define CLRSAMPLER_CLR_LINES_METHOD_LINES_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "clr/lines/assembly_slot.h"
#include "formats/runtime/il_map.h"
#include "symbols/code_source.h"
#include "symbols/source_place.h"

namespace clrsampler {

// Main loop only.
struct MethodLines {
  IlMap map;
  std::shared_ptr<AssemblySlot> assembly;  // never nullptr
  uint32_t rid = 0;                        // of the method in the assembly
  LineKind kind = LineKind::kNone;

  // `native_offset`: of an instruction, from where the method begins. nullopt: it has no line that is known now.
  std::optional<SourcePlace> At(uint32_t native_offset) const;
  // Where the method begins; nullopt as above.
  std::optional<SourcePlace> Begin() const;
  // The lines of all the code, ascending; empty: none is known now.
  std::vector<CodeLine> All() const;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_LINES_METHOD_LINES_H_
