// Numbers out of the account that a profile keeps of its run. Pure.
#ifndef CLRSAMPLER_OUTPUT_ACCOUNT_NUMBERS_H_
#define CLRSAMPLER_OUTPUT_ACCOUNT_NUMBERS_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

#include "formats/profile/profile_model.h"

namespace clrsampler {

// The account is a part of a file of strangers, and may be anything: what is not there, or is no number, is nullopt or
// 0.
class AccountNumbers {
 public:
  explicit AccountNumbers(const ProfileModel& model)
      : json_(nlohmann::json::parse(model.meta.account_json, nullptr, false)) {}

  bool Has(const char* group) const;
  // docs/stats.md has the keys: Count("waits", "kept").
  std::optional<uint64_t> Find(const char* group, const char* key) const;
  uint64_t Count(const char* group, const char* key) const;

 private:
  const nlohmann::json json_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_ACCOUNT_NUMBERS_H_
