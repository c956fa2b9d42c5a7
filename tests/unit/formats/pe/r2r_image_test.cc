#include "formats/pe/r2r_image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/formats/pe/fixture.h"

namespace clrsampler {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Variant {
  const char* folder;
  const char* image;  // without extension
  uint16_t major;
  PeMachine machine;
};
void PrintTo(const Variant& variant, std::ostream* out) { *out << variant.folder; }

class EveryImage : public testing::TestWithParam<Variant> {
 protected:
  std::string Path(absl::string_view extension) const {
    return absl::StrCat(GetParam().folder, "/", GetParam().image, extension);
  }
};

INSTANTIATE_TEST_SUITE_P(R2rImageTest, EveryImage,
                         testing::Values(Variant{"8.0.30-x64", "shapes", 9, PeMachine::kX64},
                                         Variant{"8.0.30-arm64", "shapes", 9, PeMachine::kArm64},
                                         Variant{"9.0.19-x64", "shapes", 10, PeMachine::kX64},
                                         Variant{"9.0.19-arm64", "shapes", 10, PeMachine::kArm64},
                                         Variant{"10.0.14-x64", "shapes", 16, PeMachine::kX64},
                                         Variant{"10.0.14-arm64", "shapes", 16, PeMachine::kArm64},
                                         Variant{"10.0.14-x64-hot-cold", "shapes", 16, PeMachine::kX64},
                                         Variant{"10.0.14-x64-composite", "both.r2r", 16, PeMachine::kX64}));

TEST_P(EveryImage, AgreesWithTheCompilersMapRowByRow) {
  const std::string bytes = ReadFixture(Path(".dll"));
  const FixtureMap map = ReadFixtureMap(Path(".ni.r2rmap"));
  const auto image = OpenR2r(bytes);
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_EQ((*image)->pe().r2r()->major, GetParam().major);
  EXPECT_EQ((*image)->pe().machine(), GetParam().machine);
  FixtureOpener opener(GetParam().folder);
  std::map<uint32_t, std::string> ours;
  for (uint32_t i = 0; i < (*image)->function_count(); ++i) {
    const auto function = (*image)->Function(i);
    ASSERT_NE(function->method, R2rFunction::kNoOwner);
    if (function->part != R2rPart::kBody) continue;
    const auto name = (*image)->Name(function->method, opener, MethodVariables::kReplaced);
    ASSERT_TRUE(name.ok()) << name.status();
    EXPECT_FALSE(name->method_by_token || name->types_by_token);
    ours[function->begin] = R2rMapText(name->name);
  }
  EXPECT_EQ(ours, map.names);
  EXPECT_GE(map.names.size(), 66u);
}

TEST_P(EveryImage, EveryAddressBelongsToTheFunctionAroundItOrToNobody) {
  const std::string bytes = ReadFixture(Path(".dll"));
  const FixtureMap map = ReadFixtureMap(Path(".ni.r2rmap"));
  const auto image = OpenR2r(bytes);
  ASSERT_TRUE(image.ok());
  uint32_t inside = 0, outside = 0;
  const uint32_t last = (*image)->Function((*image)->function_count() - 1)->end;
  for (uint32_t rva = map.names.begin()->first - 64; rva < last + 64; ++rva) {
    const auto function = (*image)->Find(rva);
    const auto next = map.names.upper_bound(rva);
    if (!function) {
      ++outside;
      EXPECT_FALSE((*image)->BeginsAt(rva));
      continue;
    }
    ++inside;
    ASSERT_LE(function->begin, rva);
    ASSERT_GT(function->end, rva);
    EXPECT_EQ((*image)->BeginsAt(rva), rva == function->begin);
    if (function->part == R2rPart::kCold) continue;
    // Funclets lie inside the row of their method.
    ASSERT_NE(next, map.names.begin());
    const uint32_t row = std::prev(next)->first;
    EXPECT_EQ((*image)->Function(function->method)->begin, row);
    EXPECT_LT(rva, row + map.bytes.at(row));
  }
  EXPECT_GT(outside, 128u);  // padding between functions exists and is nobody's
  EXPECT_GT(inside, 4000u);
}

TEST_P(EveryImage, ThunksLieOutsideAllFunctions) {
  const std::string bytes = ReadFixture(Path(".dll"));
  const auto image = OpenR2r(bytes);
  ASSERT_TRUE(image.ok());
  const R2rSection* section = (*image)->pe().r2r()->core.Find(R2rSectionType::kDelayLoadMethodCallThunks);
  ASSERT_NE(section, nullptr);
  const uint32_t begin = section->range.rva, end = begin + section->range.bytes;
  ASSERT_LT(begin, end);
  EXPECT_TRUE((*image)->pe().SectionOfRva(begin)->executable);
  EXPECT_FALSE((*image)->IsMethodCallThunk(begin - 1));
  EXPECT_FALSE((*image)->IsMethodCallThunk(end));
  for (uint32_t rva = begin; rva < end; ++rva) {
    ASSERT_TRUE((*image)->IsMethodCallThunk(rva));
    ASSERT_FALSE((*image)->Find(rva).has_value());
  }
  // Each ends with a jump through a cell: on x64 `jmp [rip + distance]`, on arm64 `br x12`.
  const absl::string_view code(bytes.data() + *(*image)->pe().OffsetOfRva(begin), section->range.bytes);
  const absl::string_view jump =
      GetParam().machine == PeMachine::kX64 ? absl::string_view("\xff\x25") : absl::string_view("\x80\x01\x1f\xd6");
  EXPECT_NE(code.find(jump), absl::string_view::npos);
}

TEST(R2rImageTest, ColdPartsHaveTheNameOfTheirMethod) {
  const std::string bytes = ReadFixture("10.0.14-x64-hot-cold/shapes.dll");
  const auto image = OpenR2r(bytes);
  ASSERT_TRUE(image.ok());
  FixtureOpener opener("");
  std::map<std::string, int> cold;
  for (uint32_t i = 0; i < (*image)->function_count(); ++i) {
    const auto function = (*image)->Function(i);
    if (function->part != R2rPart::kCold) continue;
    EXPECT_NE(function->method, i);
    // The parent of the chained unwind information (UNWIND_INFO flag 4) is an independent witness.
    const auto row = (*image)->pe().Bytes((*image)->pe().r2r()->core.Find(R2rSectionType::kRuntimeFunctions)->range);
    const uint32_t unwind = *LoadAt<uint32_t>(*row, 12 * i + 8);
    const auto header = (*image)->pe().Bytes({unwind, 4});
    ASSERT_TRUE(header.has_value());
    if (static_cast<uint8_t>((*header)[0]) >> 3 & 4) {
      const uint32_t codes = static_cast<uint8_t>((*header)[2]);
      const auto parent = (*image)->pe().Bytes({unwind + 4 + (codes + 1) / 2 * 4, 4});
      EXPECT_EQ(*LoadAt<uint32_t>(*parent, 0), (*image)->Function(function->method)->begin);
      ++cold["(chained)"];
    }
    ++cold[(*image)->Name(function->method, opener)->name.method];
  }
  EXPECT_GE(cold["ColdPath"], 1);
  EXPECT_GE(cold["(chained)"], 1);
}

TEST(R2rImageTest, NamesCarryWhatTheMapDoesNot) {
  const std::string bytes = ReadFixture("10.0.14-x64/shapes.dll");
  const auto image = OpenR2r(bytes);
  ASSERT_TRUE(image.ok());
  FixtureOpener opener("");
  std::vector<std::string> same, make;
  for (uint32_t i = 0; i < (*image)->function_count(); ++i) {
    const auto function = (*image)->Function(i);
    if (function->part != R2rPart::kBody) continue;
    const auto name = (*image)->Name(i, opener);
    EXPECT_EQ(name->name.module, "shapes");
    if (name->name.method == "Same") {
      same.push_back(name->name.method_args.at(0));
      EXPECT_THAT(*name->name.parameters, ElementsAre("!!0"));  // as the runtime writes it
      EXPECT_EQ(name->name.return_type, "!!0");
    }
    if (name->name.method == "Make")
      make.push_back(absl::StrCat(name->name.type_args.at(0), " ", name->name.method_args.at(0)));
    if (name->name.method == ".ctor") {
      EXPECT_EQ(name->name.return_type, "");
    } else if (name->name.method == "Put") {
      EXPECT_EQ(name->name.return_type, "System.Void");
    }
  }
  EXPECT_THAT(same, testing::UnorderedElementsAre("System.Int64", "Shapes.Point", "System.__Canon"));
  EXPECT_THAT(make, testing::UnorderedElementsAre("Shapes.Colour Shapes.Point", "System.__Canon System.__Canon"));
  EXPECT_THAT(opener.asked, IsEmpty());  // types of other assemblies are named by references alone
}

TEST(R2rImageTest, AMissingComponentLeavesModuleAndToken) {
  const std::string bytes = ReadFixture("10.0.14-x64-composite/both.r2r.dll");
  const auto image = OpenR2r(bytes);
  ASSERT_TRUE(image.ok());
  FixtureOpener opener("10.0.14-x64-composite");
  opener.contents["library"] = "";
  int by_token = 0, whole = 0;
  for (uint32_t i = 0; i < (*image)->function_count(); ++i) {
    if ((*image)->Function(i)->part != R2rPart::kBody) continue;
    const auto name = (*image)->Name(i, opener);
    ASSERT_TRUE(name.ok()) << name.status();
    if (name->method_by_token) {
      ++by_token;
      EXPECT_EQ(name->name.module, "library");
      EXPECT_THAT(name->name.method, testing::StartsWith("library!0x0600"));
    } else {
      ++whole;
      EXPECT_EQ(name->name.module, "shapes");
    }
  }
  EXPECT_GE(by_token, 1);
  EXPECT_GT(whole, 60);
  EXPECT_THAT((*image)->missing_assemblies(), ElementsAre("library"));
  EXPECT_EQ(std::count(opener.asked.begin(), opener.asked.end(), "library"), 1);  // asked once, not for each name

  (*image)->ForgetMissing();
  FixtureOpener complete("10.0.14-x64-composite");
  for (uint32_t i = 0; i < (*image)->function_count(); ++i) {
    if ((*image)->Function(i)->part != R2rPart::kBody) continue;
    EXPECT_FALSE((*image)->Name(i, complete)->method_by_token);
  }
}

TEST(R2rImageTest, AComponentOfAnotherBuildIsNotUsed) {
  const std::string bytes = ReadFixture("10.0.14-x64-composite/both.r2r.dll");
  const auto image = OpenR2r(bytes);
  ASSERT_TRUE(image.ok());
  FixtureOpener opener("10.0.14-x64-composite");
  std::string other = ReadFixture("10.0.14-x64-composite/library.dll");
  const auto pe = PeImage::Parse(AsBytes(other));
  const auto mvid = MetadataTables::Parse(*pe->Bytes(*pe->metadata()))->Mvid();
  const size_t place = other.find(std::string(reinterpret_cast<const char*>(mvid->data()), mvid->size()));
  ASSERT_NE(place, std::string::npos);
  other[place] ^= 1;
  opener.contents["library"] = other;
  int by_token = 0;
  for (uint32_t i = 0; i < (*image)->function_count(); ++i) {
    if ((*image)->Function(i)->part == R2rPart::kBody) by_token += (*image)->Name(i, opener)->method_by_token;
  }
  EXPECT_GE(by_token, 1);
}

TEST(R2rImageTest, AComponentHasNoCodeOfItsOwn) {
  for (const char* name : {"shapes", "library"}) {
    const std::string bytes = ReadFixture(absl::StrCat("10.0.14-x64-composite/", name, ".dll"));
    const auto image = OpenR2r(bytes);
    EXPECT_EQ(image.status().code(), absl::StatusCode::kFailedPrecondition) << image.status();
    EXPECT_THAT(std::string(image.status().message()), HasSubstr("component"));
  }
}

TEST(R2rImageTest, ANewerMajorVersionIsRefused) {
  std::string bytes = ReadFixture("10.0.14-x64/shapes.dll");
  const size_t header = bytes.find(std::string("RTR\0\x10\0", 6));
  ASSERT_NE(header, std::string::npos);
  // A preview between 10 and 11, and a runtime after it.
  for (const int major : {kNewestR2rMajorOf10 + 1, kNewestR2rMajor + 1}) {
    bytes[header + 4] = static_cast<char>(major);
    const auto image = OpenR2r(bytes);
    EXPECT_EQ(image.status().code(), absl::StatusCode::kUnimplemented) << image.status();
    EXPECT_EQ(image.status().message(), absl::StrCat("R2R version ", major, ".0 is not known"));
  }
}

// Nothing of such an image is believed.
TEST(R2rImageTest, TablesThatContradictThemselvesAreRefused) {
  const std::string bytes = ReadFixture("10.0.14-x64/shapes.dll");
  const auto pe = PeImage::Parse(AsBytes(bytes));
  auto damaged = [&](R2rSectionType type, uint32_t at, uint8_t value) {
    const R2rSection* section = pe->r2r()->core.Find(type);
    std::string copy = bytes;
    copy[*pe->OffsetOfRva(section->range.rva) + at] = static_cast<char>(value);
    return OpenR2r(copy).status();
  };
  // The second runtime function begins before the first.
  EXPECT_EQ(damaged(R2rSectionType::kRuntimeFunctions, 13, 0).code(), absl::StatusCode::kDataLoss);
  // The array of entry points announces more methods than there are.
  EXPECT_EQ(damaged(R2rSectionType::kMethodDefEntryPoints, 0, 0xFC).code(), absl::StatusCode::kDataLoss);
  // The hash table of instances has more buckets than bytes.
  EXPECT_EQ(damaged(R2rSectionType::kInstanceEntryPoints, 0, 31 << 2).code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace clrsampler
