#include "formats/btf/btf_subset.h"

#include <bpf/btf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "unit/formats/btf/btf_builder.h"

namespace clrsampler {
namespace {

using test_support::BtfBuilder;
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

// libbpf, which has to be able to read it, is the judge.
class Judged {
 public:
  explicit Judged(const std::vector<std::byte>& bytes)
      : btf_(btf__new(bytes.data(), static_cast<uint32_t>(bytes.size())), btf__free) {}

  bool readable() const { return btf_ != nullptr; }
  size_t size() const { return btf__type_cnt(btf_.get()) - 1; }
  bool Has(const char* name, uint32_t kind) const { return btf__find_by_name_kind(btf_.get(), name, kind) > 0; }
  // "name kind@bit offset" of each member.
  std::vector<std::string> Members(const char* name) const {
    std::vector<std::string> members;
    const btf_type* type =
        btf__type_by_id(btf_.get(), static_cast<uint32_t>(btf__find_by_name_kind(btf_.get(), name, BTF_KIND_STRUCT)));
    for (uint32_t i = 0; i < btf_vlen(type); ++i) {
      const btf_member& member = btf_members(type)[i];
      const btf_type* of = btf__type_by_id(btf_.get(), member.type);
      members.push_back(std::string(btf__name_by_offset(btf_.get(), member.name_off)) + " " +
                        std::to_string(btf_kind(of)) + "@" + std::to_string(btf_member_bit_offset(type, i)));
    }
    return members;
  }
  int64_t BytesOf(const char* name) const {
    return btf__resolve_size(btf_.get(),
                             static_cast<uint32_t>(btf__find_by_name_kind(btf_.get(), name, BTF_KIND_STRUCT)));
  }

 private:
  std::unique_ptr<btf, decltype(&btf__free)> btf_;
};

// struct other { int x; };
// struct inner { int in; };
// typedef struct inner inner_t;
// struct wanted { int a; struct other* b; inner_t c; int d[3]; };
std::vector<std::byte> SomeTypes() {
  BtfBuilder btf;
  const uint32_t word = btf.Int("int", 4);
  const uint32_t other = btf.Add("other", BTF_KIND_STRUCT, 1, 4, {btf.Name("x"), word, 0});
  const uint32_t pointer = btf.Pointer(other);
  const uint32_t inner = btf.Add("inner", BTF_KIND_STRUCT, 1, 4, {btf.Name("in"), word, 0});
  const uint32_t alias = btf.Add("inner_t", BTF_KIND_TYPEDEF, 0, inner);
  const uint32_t array = btf.Add("", BTF_KIND_ARRAY, 0, 0, {word, word, 3});
  btf.Add("wanted", BTF_KIND_STRUCT, 4, 32,
          {btf.Name("a"), word, 0, btf.Name("b"), pointer, 64, btf.Name("c"), alias, 128, btf.Name("d"), array, 160});
  btf.Add("alone", BTF_KIND_STRUCT, 1, 4, {btf.Name("y"), word, 0});
  return btf.Finish();
}

TEST(BtfSubsetTest, HoldsWhatLiesInsideAndNotWhatPointersLeadTo) {
  const auto subset = BtfSubset(SomeTypes(), {"wanted"});
  ASSERT_TRUE(subset.ok()) << subset.status();
  const Judged judged(*subset);
  ASSERT_TRUE(judged.readable());
  EXPECT_THAT(judged.Members("wanted"), ElementsAre("a 1@0", "b 2@64", "c 8@128", "d 3@160"));
  EXPECT_THAT(judged.Members("inner"), ElementsAre("in 1@0"));
  EXPECT_EQ(judged.BytesOf("wanted"), 32);
  EXPECT_FALSE(judged.Has("other", BTF_KIND_STRUCT));
  EXPECT_FALSE(judged.Has("alone", BTF_KIND_STRUCT));
  EXPECT_EQ(judged.size(), 6u) << "wanted, int, pointer, inner_t, inner, array";
}

TEST(BtfSubsetTest, TakesEveryTypeOfAName) {
  BtfBuilder btf;
  btf.Add("state", BTF_KIND_STRUCT, 0, 4);
  btf.Add("state", BTF_KIND_ENUM, 2, 4, {btf.Name("kOn"), 1, btf.Name("kOff"), 2});
  btf.Add("state", BTF_KIND_ENUM64, 1, 8, {btf.Name("kFar"), 0, 1});
  btf.Add("state___old", BTF_KIND_UNION, 0, 4);
  btf.Add("stat", BTF_KIND_STRUCT, 0, 4);
  btf.Add("states", BTF_KIND_STRUCT, 0, 4);
  const auto subset = BtfSubset(btf.Finish(), {"state"});
  ASSERT_TRUE(subset.ok()) << subset.status();
  const Judged judged(*subset);
  ASSERT_TRUE(judged.readable());
  EXPECT_EQ(judged.size(), 4u);
  EXPECT_TRUE(judged.Has("state", BTF_KIND_STRUCT));
  EXPECT_TRUE(judged.Has("state", BTF_KIND_ENUM));
  EXPECT_TRUE(judged.Has("state", BTF_KIND_ENUM64));
  EXPECT_TRUE(judged.Has("state___old", BTF_KIND_UNION));
}

TEST(BtfSubsetTest, NamesAreThoseOfTypesThatRelocationsStartFrom) {
  BtfBuilder btf;
  const uint32_t word = btf.Int("int", 4);
  btf.Add("task_struct___old", BTF_KIND_STRUCT, 0, 4);
  btf.Add("word_t", BTF_KIND_TYPEDEF, 0, word);
  btf.Add("", BTF_KIND_UNION, 0, 4);
  btf.Add("___", BTF_KIND_UNION, 0, 4);
  btf.Add("forward", BTF_KIND_FWD, 0, 0);
  const auto names = BtfTypeNames(btf.Finish());
  ASSERT_TRUE(names.ok()) << names.status();
  EXPECT_THAT(*names, UnorderedElementsAre("task_struct", "word_t"));
}

TEST(BtfSubsetTest, TypesThatHoldThemselvesEnd) {
  BtfBuilder btf;
  btf.Add("a", BTF_KIND_TYPEDEF, 0, 2);
  btf.Add("b", BTF_KIND_TYPEDEF, 0, 1);
  btf.Add("s", BTF_KIND_STRUCT, 1, 4, {btf.Name("m"), 3, 0});
  const auto subset = BtfSubset(btf.Finish(), {"a", "s"});
  ASSERT_TRUE(subset.ok()) << subset.status();
  EXPECT_EQ(Judged(*subset).size(), 3u);
}

TEST(BtfSubsetTest, RefusesWhatIsNotKnownOrCutOff) {
  BtfBuilder future;
  future.Add("new", 20, 0, 0);
  EXPECT_TRUE(absl::IsUnimplemented(BtfSubset(future.Finish(), {"new"}).status()));
  const std::vector<std::byte> whole = SomeTypes();
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    EXPECT_TRUE(absl::IsDataLoss(BtfSubset(std::span(whole).first(bytes), {"wanted"}).status())) << bytes;
  }
  std::vector<std::byte> swapped = whole;
  std::swap(swapped[0], swapped[1]);
  EXPECT_TRUE(absl::IsDataLoss(BtfSubset(swapped, {"wanted"}).status()));
}

}  // namespace
}  // namespace clrsampler
