// An option that takes one of a few words. The table of its words and of what they stand for is their only place.
#ifndef CLRSAMPLER_CLI_CHOICE_OPTION_H_
#define CLRSAMPLER_CLI_CHOICE_OPTION_H_

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>
#include <vector>

namespace clrsampler {

template <typename Value>
struct Choice {
  const char* word;
  Value value;
};

// `value` has the default. `choices` outlives the app.
template <typename Value, size_t kCount>
CLI::Option* DeclareChoice(CLI::App& app, const char* name, Value& value, const Choice<Value> (&choices)[kCount],
                           const std::string& help, const char* type) {
  std::vector<std::string> words;
  std::string usual;
  for (const Choice<Value>& choice : choices) {
    words.emplace_back(choice.word);
    if (choice.value == value) usual = choice.word;
  }
  const auto take = [&value, &choices](const std::string& word) {
    for (const Choice<Value>& choice : choices) {
      if (word == choice.word) value = choice.value;
    }
  };
  return app.add_option_function<std::string>(name, take, help)
      ->check(CLI::IsMember(words))
      ->default_str(usual)
      ->type_name(type);
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_CHOICE_OPTION_H_
