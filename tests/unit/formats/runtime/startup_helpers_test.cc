#include "formats/runtime/startup_helpers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <utility>

#include "unit/formats/runtime/code_image.h"

namespace clrsampler {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr uint64_t kTable = 0x80000;
constexpr size_t kPlaces = 20;

// A runtime's code: the setter, functions that are set, and what sets them.
class StartupHelpersTest : public testing::Test {
 protected:
  StartupHelpersTest() {
    one_ = code_.Add(CodeOf("53 5b c3"));
    two_ = code_.Add(CodeOf("54 5c c3"));
    setter_ = AddSetter(kTable);
  }
  uint64_t AddSetter(uint64_t table) {
    const uint64_t start = code_.Add(CodeOf("55 48 89 e5 89 f8 48 8d 0d 00 00 00 00 48 89 34 c1 5d c3"));
    code_.Lead(start + 9, table);
    return start;
  }
  // lea rsi, [function]; mov edi, place; call
  std::string Set(uint64_t at, uint64_t function, uint32_t place, uint64_t setter) const {
    std::string text = CodeOf("48 8d 35") + CodeImage::Distance(at + 3, function) + CodeOf("bf") + RawBytes(place);
    return text + CodeOf("e8") + CodeImage::Distance(at + text.size() + 1, setter);
  }
  // mov edi, place; mov rsi, rbx; call
  std::string SetAgain(uint64_t at, uint32_t place) const {
    const std::string text = CodeOf("bf") + RawBytes(place) + CodeOf("48 89 de e8");
    return text + CodeImage::Distance(at + text.size(), setter_);
  }
  std::vector<std::pair<size_t, uint64_t>> Found() const {
    return code_.With([](const ElfImage& image, const EhFrameTable& unwind) {
      std::vector<std::pair<size_t, uint64_t>> found;
      for (const StartupHelper& helper : FindStartupHelpers(image, unwind, {kTable}, kPlaces)) {
        found.emplace_back(helper.place, helper.function.value);
      }
      return found;
    });
  }

  CodeImage code_;
  uint64_t one_ = 0, two_ = 0, setter_ = 0;
};

TEST_F(StartupHelpersTest, AreWhatIsPassedToTheSetter) {
  const uint64_t at = code_.next();
  std::string text = Set(at, one_, 4, setter_);
  text += Set(at + text.size(), two_, 9, setter_);
  code_.Add(text + "\xc3");
  EXPECT_THAT(Found(), ElementsAre(Pair(4, one_), Pair(9, two_)));
}

TEST_F(StartupHelpersTest, OneFunctionMayBeSetForSeveralPlaces) {
  const uint64_t at = code_.next();
  std::string text = CodeOf("48 8d 1d") + CodeImage::Distance(at + 3, one_);
  text += SetAgain(at + text.size(), 4);
  text += SetAgain(at + text.size(), 5);
  text += CodeOf("90");  // anything may have changed the register
  text += SetAgain(at + text.size(), 6);
  code_.Add(text);
  EXPECT_THAT(Found(), ElementsAre(Pair(4, one_), Pair(5, one_)));
}

TEST_F(StartupHelpersTest, WhatIsNoConstantIsLeftOut) {
  const uint64_t at = code_.next();
  const std::string text = CodeOf("48 89 c6 bf 04 00 00 00 e8");  // mov rsi, rax
  code_.Add(text + CodeImage::Distance(at + text.size(), setter_));
  EXPECT_THAT(Found(), IsEmpty());
}

TEST_F(StartupHelpersTest, APlaceBehindTheTableIsLeftOut) {
  const uint64_t at = code_.next();
  std::string text = Set(at, one_, kPlaces, setter_);
  text += Set(at + text.size(), two_, kPlaces - 1, setter_);
  code_.Add(text);
  EXPECT_THAT(Found(), ElementsAre(Pair(kPlaces - 1, two_)));
}

TEST_F(StartupHelpersTest, WhatBeginsNoFunctionIsLeftOut) {
  code_.Add(Set(code_.next(), one_ + 1, 4, setter_));
  EXPECT_THAT(Found(), IsEmpty());
}

TEST_F(StartupHelpersTest, MoreCallsThanARuntimeHasAreNone) {
  const auto calls = [&](int count) {
    CodeImage before = code_;
    const uint64_t at = code_.next();
    std::string text;
    for (int i = 0; i < count; ++i) text += Set(at + text.size(), one_, 4, setter_);
    code_.Add(text);
    const size_t found = Found().size();
    code_ = before;
    return found;
  };
  EXPECT_EQ(calls(256), 256u);
  EXPECT_EQ(calls(257), 0u);
}

TEST_F(StartupHelpersTest, TwoSettersAreNone) {
  code_.Add(Set(code_.next(), one_, 4, setter_));
  EXPECT_THAT(Found(), ElementsAre(Pair(4, one_)));
  AddSetter(kTable);
  EXPECT_THAT(Found(), IsEmpty());
}

TEST_F(StartupHelpersTest, ASetterOfAnotherTableIsNone) {
  const uint64_t other = AddSetter(kTable + 8);
  code_.Add(Set(code_.next(), one_, 4, other));
  EXPECT_THAT(Found(), IsEmpty());
}

TEST_F(StartupHelpersTest, TheAllocatorOfStringsIsPassedBehindTheOthers) {
  const auto behind = [&](absl::string_view rest) {
    CodeImage code = code_;
    const uint64_t at = code.next();
    code.Add(CodeOf("e8 00 00 00 00 48 8d 3d") + CodeImage::Distance(at + 8, two_) + CodeOf(rest));
    return code.With(
        [&](const ElfImage& image, const EhFrameTable& unwind) { return StringAllocatorBehind(image, unwind, {at}); });
  };
  EXPECT_EQ(behind("31 f6"), VirtualAddress{two_});
  EXPECT_EQ(behind("31 ff"), std::nullopt);
  EXPECT_EQ(behind(""), std::nullopt);
}

TEST_F(StartupHelpersTest, TheOnlyJumpLeadsOutOfAFunction) {
  const auto jump = [&](absl::string_view before, uint64_t target, absl::string_view behind) {
    CodeImage code = code_;
    const uint64_t at = code.next();
    const std::string text = CodeOf(before);
    code.Add(text + CodeOf("e9") + CodeImage::Distance(at + text.size() + 1, target) + CodeOf(behind));
    return code.With(
        [&](const ElfImage& image, const EhFrameTable& unwind) { return OnlyJumpFrom(image, unwind, {at}); });
  };
  EXPECT_EQ(jump("48 39 f7", two_, ""), VirtualAddress{two_});
  EXPECT_EQ(jump("74 05", two_, "c3"), VirtualAddress{two_}) << "a branch inside";
  EXPECT_EQ(jump("48 39 f7", two_ + 1, ""), std::nullopt) << "to no function";
  EXPECT_EQ(jump("ff e0", two_, ""), std::nullopt) << "a jump by a register leads anywhere";
  EXPECT_EQ(jump("06", two_, ""), std::nullopt) << "no instruction";
  EXPECT_EQ(jump("eb 80", two_, ""), std::nullopt) << "to two places";
}

}  // namespace
}  // namespace clrsampler
