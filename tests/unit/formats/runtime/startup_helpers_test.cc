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
      for (const StartupHelper& helper : FindStartupHelpers(image, unwind, {}, {kTable}, kPlaces)) {
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
    return code.With([&](const ElfImage& image, const EhFrameTable& unwind) {
      return StringAllocatorBehind(image, unwind, {}, {at});
    });
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

// The same of arm64. Functions of other files are taken from a table of addresses, which relocations fill.
class Arm64StartupHelpersTest : public testing::Test {
 protected:
  static constexpr uint64_t kSlots = 0x70000;  // of addresses: one_ at its begin, two_ eight bytes behind

  Arm64StartupHelpersTest() : code_(EM_AARCH64) {
    one_ = code_.Add(Arm64CodeOf("d503201f d65f03c0"));
    two_ = code_.Add(Arm64CodeOf("d503201f d65f03c0"));
    setter_ = AddSetter(kTable);
  }
  // adrp xN, the page of an address
  static std::string Page(uint64_t at, uint64_t address, uint32_t number) {
    const auto pages = static_cast<uint32_t>((address >> 12) - (at >> 12));
    return RawBytes(0x90000000 | (pages & 3) << 29 | (pages >> 2 & 0x7ffff) << 5 | number);
  }
  uint64_t AddSetter(uint64_t table) {
    const uint32_t low = static_cast<uint32_t>(table & 0xfff);
    return code_.Add(Page(code_.next(), table, 8) + RawBytes(0x91000108 | low << 10) +
                     Arm64CodeOf("f8205901 d65f03c0"));
  }
  std::string Call(uint64_t at, uint64_t target) const {
    return RawBytes(0x94000000 | (static_cast<uint32_t>((target - at) / 4) & 0x03ffffff));
  }
  // adrp x1; mov w0, place; ldr x1, [x1, slot]; bl
  std::string Set(uint64_t at, uint32_t slot, uint32_t place) const {
    return Page(at, kSlots, 1) + RawBytes(0x52800000 | place << 5) + RawBytes(0xf9400021 | slot << 10) +
           Call(at + 12, setter_);
  }
  template <typename Use>
  auto With(const Use& use) const {
    LinkedImage relocated(EM_AARCH64);
    relocated.AddRelocations(0x60000, {{kSlots, one_}, {kSlots + 8, two_}});
    const std::string bytes = relocated.Build();
    const auto relocations = RelativeRelocations::Read(*ElfImage::Parse(AsBytes(bytes)));
    return code_.With(
        [&](const ElfImage& image, const EhFrameTable& unwind) { return use(image, unwind, *relocations); });
  }
  std::vector<std::pair<size_t, uint64_t>> Found() const {
    return With([](const ElfImage& image, const EhFrameTable& unwind, const RelativeRelocations& relocations) {
      std::vector<std::pair<size_t, uint64_t>> found;
      for (const StartupHelper& helper : FindStartupHelpers(image, unwind, relocations, {kTable}, kPlaces)) {
        found.emplace_back(helper.place, helper.function.value);
      }
      return found;
    });
  }

  CodeImage code_;
  uint64_t one_ = 0, two_ = 0, setter_ = 0;
};

TEST_F(Arm64StartupHelpersTest, AreWhatIsPassedToTheSetter) {
  const uint64_t at = code_.next();
  code_.Add(Set(at, 0, 4) + Set(at + 16, 1, 9) + Arm64CodeOf("d65f03c0"));
  EXPECT_THAT(Found(), ElementsAre(Pair(4, one_), Pair(9, two_)));
}

TEST_F(Arm64StartupHelpersTest, ARegisterThatSurvivesCallsMayBePassedAgain) {
  const uint64_t at = code_.next();
  // adrp x19; ldr x19; mov w0, 4; mov x1, x19; bl; mov w0, 5; mov x1, x19; bl; then once more, behind a load from x2
  std::string text = Page(at, kSlots, 19) + Arm64CodeOf("f9400273 52800080 aa1303e1");
  text += Call(at + text.size(), setter_) + Arm64CodeOf("528000a0 aa1303e1");
  text += Call(at + text.size(), setter_) + Arm64CodeOf("f9400053 528000c0 aa1303e1");
  text += Call(at + text.size(), setter_);
  code_.Add(text);
  EXPECT_THAT(Found(), ElementsAre(Pair(4, one_), Pair(5, one_)));
}

TEST_F(Arm64StartupHelpersTest, WhatIsChosenWhileTheProgramRunsIsLeftOut) {
  const uint64_t at = code_.next();
  std::string text = Page(at, kSlots, 1) + Arm64CodeOf("52800080 f9400021 9a881001");  // csel x1, x0, x8, ne
  text += Call(at + text.size(), setter_);
  const uint64_t second = at + text.size();
  text += Page(second, kSlots, 1) + Arm64CodeOf("f9400021");  // the place is what the first call returned
  text += Call(at + text.size(), setter_);
  code_.Add(text);
  EXPECT_THAT(Found(), IsEmpty());
}

TEST_F(Arm64StartupHelpersTest, TwoSettersAndThoseOfOtherTablesAreNone) {
  code_.Add(Set(code_.next(), 0, 4));
  AddSetter(kTable + 8);
  EXPECT_THAT(Found(), ElementsAre(Pair(4, one_)));
  AddSetter(kTable);
  EXPECT_THAT(Found(), IsEmpty());
}

TEST_F(Arm64StartupHelpersTest, TheAllocatorOfStringsIsPassedBehindTheOthers) {
  const auto behind = [&](absl::string_view rest) {
    CodeImage before = code_;
    const uint64_t at = code_.next();
    code_.Add(Arm64CodeOf("d503201f") + Page(at + 4, kSlots, 0) + Arm64CodeOf(rest));
    const auto found = With([&](const ElfImage& image, const EhFrameTable& unwind, const RelativeRelocations& slots) {
      return StringAllocatorBehind(image, unwind, slots, {at});
    });
    code_ = before;
    return found;
  };
  EXPECT_EQ(behind("2a1f03e1 f9400400 94000000"), VirtualAddress{two_});
  EXPECT_EQ(behind("f9400400 2a1f03e1 a8c17bfd 14000000"), VirtualAddress{two_}) << "the function's last call";
  EXPECT_EQ(behind("52800021 f9400400 94000000"), std::nullopt) << "another number";
  EXPECT_EQ(behind("2a1f03e1 f9400400"), std::nullopt) << "the code ends";
}

TEST_F(Arm64StartupHelpersTest, TheOnlyJumpLeadsOutOfAFunction) {
  const auto jump = [&](absl::string_view before, uint64_t target, absl::string_view behind) {
    CodeImage code = code_;
    const uint64_t at = code.next();
    const std::string text = Arm64CodeOf(before);
    code.Add(text + RawBytes(0x14000000 | (static_cast<uint32_t>((target - at - text.size()) / 4) & 0x03ffffff)) +
             Arm64CodeOf(behind));
    return code.With(
        [&](const ElfImage& image, const EhFrameTable& unwind) { return OnlyJumpFrom(image, unwind, {at}); });
  };
  EXPECT_EQ(jump("eb01001f", two_, "d65f03c0"), VirtualAddress{two_});
  EXPECT_EQ(jump("54000040", two_, "d65f03c0"), VirtualAddress{two_}) << "a branch inside";
  EXPECT_EQ(jump("97ffffff", two_, "d65f03c0"), VirtualAddress{two_}) << "a call";
  EXPECT_EQ(jump("eb01001f", two_ + 4, "d65f03c0"), std::nullopt) << "to no function";
  EXPECT_EQ(jump("d61f0200", two_, "d65f03c0"), std::nullopt) << "a jump by a register leads anywhere";
  EXPECT_EQ(jump("54fffee0", two_, "d65f03c0"), std::nullopt) << "two places";
}

}  // namespace
}  // namespace clrsampler
