// Any bytes as the name of a method: every parser and every style gives a text, and folded output obeys its rules.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

#include "formats/names/folded_text.h"
#include "formats/names/frame_text.h"
#include "formats/names/ilc_names.h"
#include "formats/names/runtime_names.h"
#include "unit/formats/names/folded_rules.h"

namespace {

using clrsampler::FoldedComm;
using clrsampler::FoldedFrame;
using clrsampler::FrameSuffix;
using clrsampler::FrameText;
using clrsampler::MethodName;
using clrsampler::NameStyle;

void Require(const std::string& broken, const std::string& frame) {
  if (broken.empty()) return;
  std::fprintf(stderr, "%s: %s\n", broken.c_str(), frame.c_str());
  __builtin_trap();
}

void CheckFolded(const std::string& text) {
  const std::string plain = FoldedFrame(text, FrameSuffix::kNone);
  Require(clrsampler::test_support::BrokenFoldedRule(plain, ""), plain);
  if (FoldedFrame(plain, FrameSuffix::kNone) != plain) Require("not idempotent", plain);
  const std::string managed = FoldedFrame(text, FrameSuffix::kManaged);
  Require(clrsampler::test_support::BrokenFoldedRule(managed, "_[j]"), managed);
  const std::string comm = FoldedComm(text);
  Require(clrsampler::test_support::BrokenFoldedRule(comm, ""), comm);
  if (comm.find(' ') != std::string::npos) Require("space in a root frame", comm);
}

void CheckName(const MethodName& name, bool whole_text) {
  const std::string short_text = FrameText(name, NameStyle::kShort);
  if (short_text.find('(') != std::string::npos) Require("parenthesis in short", short_text);
  if (!whole_text && (short_text.empty() || FrameText(name, NameStyle::kFull).empty())) Require("empty", short_text);
  CheckFolded(short_text);
  CheckFolded(FrameText(name, NameStyle::kFull));
  CheckFolded(FrameText(name, NameStyle::kRaw));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  CheckFolded(text);
  CheckName(clrsampler::ParseRuntimeName(text), text.empty());
  CheckName(clrsampler::ParseR2rMapName(text), text.empty());
  CheckName(clrsampler::ParseIlcName(text, "program"), text.empty());
  return 0;
}
