#include "output/account_numbers.h"

namespace clrsampler {

bool AccountNumbers::Has(const char* group) const {
  return json_.is_object() && json_.contains(group) && json_[group].is_object();
}

uint64_t AccountNumbers::Count(const char* group, const char* key) const {
  if (!Has(group) || !json_[group].contains(key)) return 0;
  const nlohmann::json& number = json_[group][key];
  return number.is_number_unsigned() ? number.get<uint64_t>() : 0;
}

}  // namespace clrsampler
