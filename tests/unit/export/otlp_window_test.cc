#include "export/otlp_window.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "unit/export/made_up_windows.h"
#include "unit/output/read_otlp.h"

namespace clrsampler {
namespace {

using test_support::kMadeUpSecond;
using test_support::kMadeUpStart;
using test_support::ReadOtlp;
using test_support::ShopWindow;
using test_support::WindowBuilder;
using ::testing::ElementsAre;

constexpr char kCpu[] = "samples/count";

TEST(OtlpWindowTest, AResourceForEachService) {
  const OtlpParts parts = OtlpRequestsOf(*ShopWindow(1), PushBy::kService, "web-3");
  ASSERT_EQ(parts.parts.size(), 1u);
  const ReadOtlp read(parts.parts[0].request);
  EXPECT_THAT(
      read.resources,
      ElementsAre("service.name=envoy process.executable.name=envoy host.name=web-3",
                  "service.name=shop-web process.executable.name=Shop process.runtime.name=.NET "
                  "process.runtime.version=10.0.12 container.id=0123456789abcdef0123456789abcdef host.name=web-3"));
}

TEST(OtlpWindowTest, AResourceForEachProcess) {
  WindowBuilder builder(1, kMadeUpStart);
  builder.Process(7, "web", 3);
  builder.Process(8, "web", 4);
  const std::shared_ptr<const Window> window = builder.Build();
  EXPECT_EQ(ReadOtlp(OtlpRequestsOf(*window, PushBy::kService, "h").parts[0].request).resources.size(), 1u);
  const ReadOtlp read(OtlpRequestsOf(*window, PushBy::kProcess, "h").parts[0].request);
  ASSERT_EQ(read.resources.size(), 2u);
  EXPECT_TRUE(absl::StrContains(read.resources[0], " process.pid=7 ")) << read.resources[0];
  EXPECT_TRUE(absl::StrContains(read.resources[1], " process.pid=8 ")) << read.resources[1];
  EXPECT_EQ(std::count(read.strings.begin(), read.strings.end(), "process.pid"), 0) << "samples need not say it again";
}

TEST(OtlpWindowTest, SamplesOfAPidThatIsThereTwiceBelongToTheProcessThatTheNameTells) {
  WindowBuilder builder(1, kMadeUpStart);
  builder.Process(7, "before", 3);
  builder.Process(7, "after", 4, /*dotnet=*/false);
  Window window = *builder.Build();
  EXPECT_THAT(ReadOtlp(OtlpRequestsOf(window, PushBy::kService, "h").parts[0].request).resources,
              ElementsAre("service.name=after process.executable.name=after host.name=h",
                          "service.name=before process.executable.name=before process.runtime.name=.NET "
                          "process.runtime.version=10.0.12 host.name=h"));
  // Neither of the two: it stands for itself, without a runtime.
  window.processes[0].comm = "third";
  EXPECT_THAT(ReadOtlp(OtlpRequestsOf(window, PushBy::kService, "h").parts[0].request).resources,
              ElementsAre("service.name=after process.executable.name=after host.name=h",
                          "service.name=before process.executable.name=before host.name=h"));
}

TEST(OtlpWindowTest, AProcessNamesItselfAndNoOther) {
  Window window = *ShopWindow(1);
  for (WindowProcess& process : window.processes) {
    if (process.comm != "Shop") continue;
    process.labels.Set(LabelKey::kServiceName, "shop");
    process.labels.Set(LabelKey::kServiceVersion, "1.2");
    process.labels.Set(LabelKey::kImageTag, "1.2-x");
  }
  EXPECT_THAT(ReadOtlp(OtlpRequestsOf(window, PushBy::kService, "web-3").parts[0].request).resources,
              ElementsAre("service.name=envoy process.executable.name=envoy host.name=web-3",
                          "service.name=shop process.executable.name=Shop process.runtime.name=.NET "
                          "process.runtime.version=10.0.12 container.id=0123456789abcdef0123456789abcdef "
                          "host.name=web-3 service.version=1.2 container.image.tags=[1.2-x]"));
}

TEST(OtlpWindowTest, SamplesAreCountedAndOtherViewsAreProfilesOfTheirOwn) {
  const OtlpParts parts = OtlpRequestsOf(*ShopWindow(1), PushBy::kService, "web-3");
  EXPECT_EQ(parts.parts[0].samples, 140u);
  EXPECT_EQ(parts.parts[0].profiles, 4u) << "CPU time of two services, allocations and waits of one";
  const ReadOtlp read(parts.parts[0].request);
  EXPECT_EQ(read.profiles.size(), 4u);
  EXPECT_EQ(read.Sum(kCpu), 140);
  EXPECT_EQ(read.Sum("alloc_space/bytes"), 42'000'000);
  EXPECT_EQ(read.Sum("off_cpu/nanoseconds"), static_cast<int64_t>(4 * kMadeUpSecond));
  for (const std::string& profile : read.profiles) {
    if (absl::StartsWith(profile, kCpu)) {
      EXPECT_TRUE(absl::EndsWith(profile, " per cpu/nanoseconds 50000000")) << profile;
    }
  }
}

TEST(OtlpWindowTest, EachFrequencyHasItsProfile) {
  ProfileModelBuilder model;
  const ThreadIndex thread = model.Thread({.pid = 7});
  for (const uint64_t weight : {10u, 20u, 20u}) model.Add({.thread = thread, .weight = weight});
  Window window;
  window.cpu = *std::move(model).Build();
  const ReadOtlp read(OtlpRequestsOf(window, PushBy::kService, "").parts[0].request);
  EXPECT_THAT(read.profiles,
              ElementsAre("samples/count =1 per cpu/nanoseconds 10", "samples/count =2 per cpu/nanoseconds 20"));
}

TEST(OtlpWindowTest, SamplesOfCpuTimeHaveTheirTimesWithinTheWindow) {
  ProfileModelBuilder model;
  model.meta().start_unix_ns = 1'000'000;
  model.meta().duration_ns = 500;
  const ThreadIndex thread = model.Thread({.pid = 7});
  for (const uint64_t time_ns : {uint64_t{20}, uint64_t{30}, uint64_t{500}, kNoTime}) {
    model.Add({.time_ns = time_ns, .thread = thread, .weight = 10});
  }
  Window window;
  window.cpu = *std::move(model).Build();
  EXPECT_THAT(ReadOtlp(OtlpRequestsOf(window, PushBy::kService, "").parts[0].request).profiles,
              ElementsAre("samples/count =1 per cpu/nanoseconds 10",
                          "samples/count @1000020 @1000030 @1000499 per cpu/nanoseconds 10"));
}

TEST(OtlpWindowTest, AWindowWithoutSamplesIsNoRequest) {
  const OtlpParts parts = OtlpRequestsOf(Window(), PushBy::kService, "h");
  EXPECT_TRUE(parts.parts.empty());
  EXPECT_EQ(parts.too_large, 0u);
}

std::shared_ptr<const Window> ManyServices(uint32_t count) {
  WindowBuilder builder(1, kMadeUpStart);
  for (uint32_t pid = 1; pid <= count; ++pid) builder.Process(pid, absl::StrCat("app", pid), 20);
  return builder.Build();
}

TEST(OtlpWindowTest, ALargeWindowIsSeveralRequestsWithEachSampleOnce) {
  const std::shared_ptr<const Window> window = ManyServices(50);
  const size_t whole = OtlpRequestsOf(*window, PushBy::kService, "h").parts[0].request.size();
  for (const size_t most : {whole, whole / 2, whole / 7, size_t{2000}}) {
    const OtlpParts parts = OtlpRequestsOf(*window, PushBy::kService, "h", most);
    EXPECT_GE(parts.parts.size(), whole / most) << most;
    int64_t samples = 0;
    for (const OtlpPart& part : parts.parts) {
      EXPECT_LE(part.request.size(), most);
      EXPECT_EQ(ReadOtlp(part.request).Sum(kCpu), static_cast<int64_t>(part.samples));
      samples += static_cast<int64_t>(part.samples);
    }
    EXPECT_EQ(samples, 50 * 20);
    EXPECT_EQ(parts.too_large, 0u);
  }
}

TEST(OtlpWindowTest, ARequestIsNotCutFarBelowItsBound) {
  const std::shared_ptr<const Window> window = ManyServices(50);
  const size_t whole = OtlpRequestsOf(*window, PushBy::kService, "h").parts[0].request.size();
  EXPECT_EQ(OtlpRequestsOf(*window, PushBy::kService, "h", whole + whole / 4).parts.size(), 1u);
}

TEST(OtlpWindowTest, ASampleThatIsTooLargeIsCountedAndLeavesTheOthers) {
  WindowBuilder builder(1, kMadeUpStart);
  builder.Process(1, "small", 3);
  builder.Process(2, std::string(5000, 'x'), 2);
  builder.Process(3, "tiny", 4);
  const OtlpParts parts = OtlpRequestsOf(*builder.Build(), PushBy::kService, "h", 4000);
  EXPECT_EQ(parts.too_large, 2u);
  EXPECT_EQ(parts.samples_too_large, 2u);
  uint64_t samples = 0;
  for (const OtlpPart& part : parts.parts) samples += part.samples;
  EXPECT_EQ(samples, 7u);
}

}  // namespace
}  // namespace clrsampler
