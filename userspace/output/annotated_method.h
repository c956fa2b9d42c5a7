// A method with what its lines and instructions cost, as text.
#ifndef CLRSAMPLER_OUTPUT_ANNOTATED_METHOD_H_
#define CLRSAMPLER_OUTPUT_ANNOTATED_METHOD_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "disassembly/disassembler.h"
#include "formats/profile/profile_model.h"

namespace clrsampler {

// The bodies of the one method that `method` means, as indexes of ProfileModel::code, those with most samples first.
// A whole name means its method; else the end of a name does, from a dot on, and else any part of one.
// FailedPrecondition: the profile has no code. NotFound: no method is called that. InvalidArgument: several are.
absl::StatusOr<std::vector<size_t>> BodiesOfMethod(const ProfileModel& model, absl::string_view method);

// How much of the method is written.
struct AnnotateOptions {
  bool all_bodies = false;  // also those without a sample, where others have some
};

// Gives the instructions of a body; empty: their text is not known.
using DisassembleBody = std::function<std::vector<Instruction>(const ModelCode&)>;

// First the lines with their samples, then each body with its instructions, under the lines that they stand for.
// `bodies`: what BodiesOfMethod gave. Names and texts of others are made printable.
std::string AnnotatedMethod(const ProfileModel& model, const std::vector<size_t>& bodies,
                            const DisassembleBody& disassemble, const AnnotateOptions& options = {});

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_ANNOTATED_METHOD_H_
