// The request of a client: the target ("/api/profile?from=-5m&pid=4711") in parts, and these as values.
//
// Pure. Nothing is guessed. A parameter that is misspelt, given twice or no value of its kind is an error. An answer
// about the whole host to a question about one process would be worse than none.
#ifndef CLRSAMPLER_EXPORT_QUERY_H_
#define CLRSAMPLER_EXPORT_QUERY_H_

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "store/history.h"

namespace clrsampler {

inline constexpr size_t kMaxTargetBytes = 8 * 1024;
inline constexpr size_t kMaxQueryParameters = 32;

struct QueryParameter {
  std::string name;
  std::string value;
};

struct RequestTarget {
  std::string path;  // decoded; begins with '/'
  std::vector<QueryParameter> parameters;
};

// RFC 3986, and '+' in parameters is a space, as browsers' forms have it. InvalidArgument: no path, too long, bad
// percent signs, control characters, or bytes that are no UTF-8.
absl::StatusOr<RequestTarget> ParseTarget(absl::string_view target);

// The same in the other direction: what ParseTarget reads back.
std::string PercentEncode(absl::string_view text);

// "now", "-90s" (also m, h, d) from now, unix seconds with or without a fraction, or RFC 3339. InvalidArgument.
absl::StatusOr<uint64_t> ParseQueryTime(absl::string_view text, uint64_t now_unix_ns);

// Takes the parameters of one target, each by its name. The first error is kept and told by Finish; until then getters
// give something harmless.
class QueryReader {
 public:
  // `target` is borrowed.
  QueryReader(const RequestTarget& target, uint64_t now_unix_ns);

  std::optional<std::string> Text(absl::string_view name);  // empty is an error
  uint64_t Time(absl::string_view name, absl::string_view fallback);
  std::optional<uint64_t> OptionalNumber(absl::string_view name, uint64_t least, uint64_t most);
  uint64_t Number(absl::string_view name, uint64_t fallback, uint64_t least, uint64_t most);
  // One of `words`; the first one where it is not given.
  std::string Word(absl::string_view name, std::initializer_list<absl::string_view> words);

  // [sel] of docs/http-api.md: from, to, pid, comm, container, thread.
  HistorySelection Selection();
  // A range: from, to, with a prefix such as "base_". Both must be given if `required`.
  void Range(absl::string_view prefix, bool required, uint64_t& from_unix_ns, uint64_t& to_unix_ns);

  void Fail(absl::Status status);
  // An error of before, or a parameter that nobody took.
  absl::Status Finish();

 private:
  const QueryParameter* Take(absl::string_view name);

  const RequestTarget& target_;
  const uint64_t now_unix_ns_;
  std::vector<bool> taken_;
  std::vector<std::string> known_;
  absl::Status status_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_EXPORT_QUERY_H_
