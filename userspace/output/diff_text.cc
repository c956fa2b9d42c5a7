#include "output/diff_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "output/summary.h"

namespace clrsampler {
namespace {

// A share of the whole. Changes are shares of the second recording.
double Percent(double weight, uint64_t total) { return 100 * weight / static_cast<double>(total); }

}  // namespace

std::string DiffText(const ProfileDiff& diff, size_t rows) {
  std::string text = absl::StrFormat("before: %d %s, after: %d\n", diff.total_before,
                                     std::string(WeightUnitText(diff.unit)), diff.total_after);
  absl::StrAppend(&text, "  before    after   change        with callees   method\n");
  for (size_t i = 0; i < std::min(rows, diff.ranked.size()); ++i) {
    const MethodChange& method = diff.methods[diff.ranked[i]];
    const auto change = [&](const WeightChange& weight) {
      return absl::StrFormat("%+7.2f %%%s", Percent(weight.change, diff.total_after),
                             weight.significant ? " *"
                             : weight.moved     ? " ~"
                                                : "  ");
    };
    absl::StrAppendFormat(&text, "%6.2f %% %6.2f %% %s    %s  %s\n",
                          Percent(static_cast<double>(method.self.before), diff.total_before),
                          Percent(static_cast<double>(method.self.after), diff.total_after), change(method.self),
                          change(method.total), PrintableText(method.name));
  }
  const auto any = [&](bool WeightChange::*mark) {
    return std::any_of(diff.methods.begin(), diff.methods.end(),
                       [&](const MethodChange& method) { return method.self.*mark || method.total.*mark; });
  };
  absl::StrAppend(&text, !diff.tested ? "changes and noise can't be told apart: the weights are no counts of samples\n"
                         : any(&WeightChange::significant) ? "* more than noise; of 100 marked, one may be wrong\n"
                                                           : "no method has changed by more than noise\n");
  if (diff.scatter_unknown) {
    absl::StrAppend(&text,
                    "the scatter of the program is not known: too few samples, or some without a time; marks may be "
                    "noise\n");
  }
  if (any(&WeightChange::moved)) {
    absl::StrAppend(&text, "~ no change of cost: inlined in one of the recordings, or replaced by its like\n");
  }
  return text;
}

}  // namespace clrsampler
