#include "output/account_numbers.h"

namespace clrsampler {

bool AccountNumbers::Has(const char* group) const {
  return json_.is_object() && json_.contains(group) && json_[group].is_object();
}

std::optional<uint64_t> AccountNumbers::Find(const char* group, const char* key) const {
  if (!Has(group) || !json_[group].contains(key)) return std::nullopt;
  const nlohmann::json& number = json_[group][key];
  if (!number.is_number_unsigned()) return std::nullopt;
  return number.get<uint64_t>();
}

uint64_t AccountNumbers::Count(const char* group, const char* key) const { return Find(group, key).value_or(0); }

}  // namespace clrsampler
