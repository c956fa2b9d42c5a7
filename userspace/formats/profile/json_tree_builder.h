// Puts a part of a JSON text, seen as events, together to a value: for the few parts that are kept as they are.
#ifndef CLRSAMPLER_FORMATS_PROFILE_JSON_TREE_BUILDER_H_
#define CLRSAMPLER_FORMATS_PROFILE_JSON_TREE_BUILDER_H_

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace clrsampler {

// Begin with Open. Depth is the caller's to bound.
class JsonTreeBuilder {
 public:
  // An ordered object looks through its keys for each that is added, so these have bounds of their own.
  struct Limits {
    size_t values;     // of the whole
    size_t keys;       // of an object
    size_t key_bytes;  // of a key
  };
  explicit JsonTreeBuilder(const Limits& limits) : limits_(limits) {}

  bool open() const { return !path_.empty(); }
  bool full() const { return full_; }  // a limit is broken: nothing is added any more
  const nlohmann::ordered_json& value() const { return value_; }

  void Open(nlohmann::ordered_json container) {
    nlohmann::ordered_json* added = Add(std::move(container));
    if (added != nullptr) path_.push_back(added);
  }
  void Close() { path_.pop_back(); }
  void Key(std::string key) { key_ = std::move(key); }
  // A value of the container that was opened last; without one, the whole.
  nlohmann::ordered_json* Add(nlohmann::ordered_json value) {
    full_ |= ++values_ > limits_.values || (!path_.empty() && path_.back()->is_object() && !TakesKey(*path_.back()));
    if (full()) return path_.empty() ? nullptr : path_.back();
    if (path_.empty()) {
      value_ = std::move(value);
      return &value_;
    }
    nlohmann::ordered_json& container = *path_.back();
    if (container.is_object()) return &(container[key_] = std::move(value));
    container.push_back(std::move(value));
    return &container.back();
  }

 private:
  bool TakesKey(const nlohmann::ordered_json& object) const {
    return object.size() < limits_.keys && key_.size() <= limits_.key_bytes;
  }

  const Limits limits_;
  size_t values_ = 0;
  bool full_ = false;
  nlohmann::ordered_json value_;
  std::vector<nlohmann::ordered_json*> path_;  // only the last one grows, so these stay where they are
  std::string key_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_PROFILE_JSON_TREE_BUILDER_H_
