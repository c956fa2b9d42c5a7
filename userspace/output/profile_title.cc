#include "output/profile_title.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace clrsampler {
namespace {

constexpr size_t kMostTitleBytes = 120;

std::string Cut(std::string text) {
  if (text.size() <= kMostTitleBytes) return text;
  size_t size = kMostTitleBytes;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) --size;  // not inside a character
  text.resize(size);
  return text + "\u2026";
}

}  // namespace

std::string ProfileTitle(const ProfileModel& model) {
  if (!model.meta.command.empty()) return Cut(model.meta.command);
  std::vector<uint64_t> by_thread(model.threads.size(), 0);
  for (size_t row = 0; row < model.samples.size(); ++row) {
    by_thread[model.samples.thread[row]] += model.samples.weight_of(row);
  }
  std::map<std::pair<uint32_t, StringIndex>, uint64_t> by_process;
  for (size_t i = 0; i < model.threads.size(); ++i) {
    by_process[{model.threads[i].pid, model.threads[i].comm}] += by_thread[i];
  }
  if (by_process.empty()) return "no samples";
  if (model.meta.whole_host) {
    return Cut(absl::StrCat(model.meta.host.empty() ? "whole host" : model.meta.host, ": ", by_process.size(),
                            by_process.size() == 1 ? " process" : " processes"));
  }
  const auto heaviest = std::max_element(by_process.begin(), by_process.end(),
                                         [](const auto& a, const auto& b) { return a.second < b.second; });
  const auto& [pid, comm] = heaviest->first;
  std::string title(model.text(comm));
  if (title.empty()) title = "process";
  if (pid != 0) absl::StrAppend(&title, " (", pid, ")");
  title = Cut(std::move(title));
  const size_t others = by_process.size() - 1;
  if (others > 0) absl::StrAppend(&title, " and ", others, others == 1 ? " other" : " others");
  return title;
}

}  // namespace clrsampler
