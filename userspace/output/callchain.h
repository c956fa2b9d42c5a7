// Call profiles for crossgen2 (--callchain-profile with --method-layout callfrequency): a JSON object of
// "caller": [["callee", ...], [count, ...]].
//
// Source: CallChainProfile.cs and FileLayoutOptimizer.cs of dotnet/runtime (src/coreclr/tools/aot). crossgen2 goes
// through all pairs, those with most samples first, and places caller and callee if it compiles both. So besides each
// call there is a pair for the next caller in the same assembly, where other code lies between. There is one of each
// method with itself, for the samples in it and in native code that it called. Without them crossgen2 would not place
// what only calls other assemblies, or is only called by them.
//
// A method is "Assembly.dll!Ns.Type+Nested`1[System.__Canon].Method", or "Ns.Type!Method.With.Dots" where its name has
// dots, which the first form would split. There are no signatures: of overloads crossgen2 takes the first. Methods
// without such a name (stubs, dynamic methods, names with '!') are passed over, as if they were inlined. Counts are of
// samples, scaled down where one does not fit into 31 bits.
#ifndef CLRSAMPLER_OUTPUT_CALLCHAIN_H_
#define CLRSAMPLER_OUTPUT_CALLCHAIN_H_

#include <utility>

#include "output/profile_writer.h"

namespace clrsampler {

class CallchainWriter : public ProfileWriter {
 public:
  explicit CallchainWriter(WriterOptions options) : options_(std::move(options)) {}
  absl::Status Write(const ProfileModel& model, const OutputSink& sink) const override;

 private:
  const WriterOptions options_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_CALLCHAIN_H_
