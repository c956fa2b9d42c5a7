#include "output/otlp.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "unit/output/read_otlp.h"

namespace clrsampler {
namespace {

using test_support::ReadOtlp;
using ::testing::ElementsAre;

std::string WrittenOtlp(const ProfileModel& model) {
  std::string bytes;
  const absl::Status written = OtlpWriter().Write(model, [&](absl::string_view piece) {
    bytes.append(piece.data(), piece.size());
    return absl::OkStatus();
  });
  EXPECT_TRUE(written.ok()) << written;
  return bytes;
}

std::vector<std::string> ProfilesOf(ProfileView view, WeightUnit unit, uint64_t period_ns = 0) {
  ProfileModelBuilder builder;
  builder.meta().view = view;
  builder.meta().unit = unit;
  builder.meta().period_ns = period_ns;
  const FrameIndex frame = builder.Frame({.name = builder.String("Main")});
  builder.Add({.thread = builder.Thread({.pid = 7}), .stack = builder.Node(kRootNode, frame), .weight = 3});
  builder.Add({.thread = builder.Thread({.pid = 7}), .stack = builder.Node(kRootNode, frame), .weight = 4});
  return ReadOtlp(WrittenOtlp(*std::move(builder).Build())).profiles;
}

// Types that are named by their period need one, and those that are summed have none (docs/formats.md).
TEST(OtlpTest, EachViewHasTheTypeThatBackendsKnow) {
  EXPECT_THAT(ProfilesOf(ProfileView::kCpu, WeightUnit::kSamples, 10'101'010),
              ElementsAre("samples/count =7 per cpu/nanoseconds 10101010"));
  EXPECT_THAT(ProfilesOf(ProfileView::kOffCpu, WeightUnit::kMicroseconds), ElementsAre("off_cpu/nanoseconds =7000"));
  EXPECT_THAT(ProfilesOf(ProfileView::kAllocations, WeightUnit::kBytes),
              ElementsAre("alloc_space/bytes =7 per memory/bytes 1"));
  EXPECT_THAT(ProfilesOf(ProfileView::kExceptions, WeightUnit::kSamples),
              ElementsAre("exceptions/count =7 per exceptions/count 1"));
  EXPECT_THAT(ProfilesOf(ProfileView::kContention, WeightUnit::kNanoseconds),
              ElementsAre("contention/nanoseconds =7 per contention/nanoseconds 1"));
}

TEST(OtlpTest, ContainersAreResourcesOfTheirOwn) {
  ProfileModelBuilder builder;
  const NodeIndex stack = builder.Node(kRootNode, builder.Frame({.name = builder.String("Main")}));
  const StringIndex comm = builder.String("web");
  for (const char* container : {"one", "two"}) {
    for (const uint32_t pid : {7u, 8u}) {
      builder.Add({.thread = builder.Thread({.pid = pid, .comm = comm, .container_id = builder.String(container)}),
                   .stack = stack});
    }
  }
  const ReadOtlp read(WrittenOtlp(*std::move(builder).Build()));
  EXPECT_THAT(read.profiles,
              ElementsAre("samples/count =1 =1 per samples/count 1", "samples/count =1 =1 per samples/count 1"));
}

TEST(OtlpTest, SamplesOfOneStackAreApartByTheirSpan) {
  ProfileModelBuilder builder;
  const NodeIndex stack = builder.Node(kRootNode, builder.Frame({.name = builder.String("Main")}));
  const ThreadIndex thread = builder.Thread({.pid = 7});
  const auto add = [&](char trace, char span, uint64_t weight) {
    TraceLink link;
    link.trace_id[0] = trace;
    link.span_id[7] = span;
    builder.Add({.thread = thread, .stack = stack, .weight = weight, .link = builder.Link(link)});
  };
  add(0, 0, 1);
  add('t', 's', 2);
  add('t', 'u', 4);
  add('t', 's', 8);
  add('t', 0, 16);  // one without the other is no link
  const std::string written = WrittenOtlp(*std::move(builder).Build());
  const ReadOtlp read(written);
  EXPECT_THAT(read.profiles, ElementsAre("samples/count =17 =10 =4 per samples/count 1"));
  EXPECT_THAT(read.links, ElementsAre("", std::string("t").append(15, '\0') + "/" + std::string(7, '\0') + "s",
                                      std::string("t").append(15, '\0') + "/" + std::string(7, '\0') + "u"));
}

TEST(OtlpTest, AFileIsOneMappingThatSaysItsBuild) {
  ProfileModelBuilder builder;
  const auto add = [&](ModelFrameKind kind, absl::string_view name, absl::string_view path, absl::string_view build,
                       absl::string_view hash) {
    const FrameIndex frame = builder.Frame({.kind = kind,
                                            .name = builder.String(name),
                                            .module_path = builder.String(path),
                                            .build_id = builder.String(build),
                                            .file_hash = builder.String(hash)});
    builder.Add({.thread = builder.Thread({.pid = 7}), .stack = builder.Node(kRootNode, frame)});
  };
  add(ModelFrameKind::kNative, "malloc", "/lib/libc.so.6", "c0ffee", "f00d");
  add(ModelFrameKind::kNative, "free", "/lib/libc.so.6", "c0ffee", "f00d");
  add(ModelFrameKind::kR2r, "Main", "/app/System.Linq.dll", "", "beef");
  add(ModelFrameKind::kNative, "time", "[vdso]", "0dd", "");
  add(ModelFrameKind::kNative, "f", "/tmp/damaged.so", "", "");
  add(ModelFrameKind::kJit, "Run", "", "", "");
  EXPECT_THAT(
      ReadOtlp(WrittenOtlp(*std::move(builder).Build())).mappings,
      ElementsAre("", "/lib/libc.so.6 process.executable.build_id.gnu=c0ffee process.executable.build_id.htlhash=f00d",
                  "/app/System.Linq.dll process.executable.build_id.htlhash=beef",
                  "[vdso] process.executable.build_id.gnu=0dd"));
}

TEST(OtlpTest, TimesThatTheFormatCannotHoldAreAnError) {
  ProfileModelBuilder builder;
  builder.meta().view = ProfileView::kOffCpu;
  builder.meta().unit = WeightUnit::kMicroseconds;
  builder.Add({.thread = builder.Thread({}), .weight = kMaxTotalWeight / 2});
  const absl::Status written =
      OtlpWriter().Write(*std::move(builder).Build(), [](absl::string_view) { return absl::OkStatus(); });
  EXPECT_EQ(written.code(), absl::StatusCode::kOutOfRange);
}

}  // namespace
}  // namespace clrsampler
