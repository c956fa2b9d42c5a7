#include "process/label_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "os/clock.h"

namespace clrsampler {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr uint64_t kMapping = 0x7f0000001000, kPayload = 0x7f0000002000;
constexpr char kContextMaps[] = "7f0000001000-7f0000002000 rw-p 00000000 00:01 99   /memfd:OTEL_CTX (deleted)\n";
const std::string kContainer = "0::/docker/" + std::string(64, 'a') + "\n";

// Memory of a process, which `on_read` may change.
struct FakeTarget {
  std::map<uint64_t, std::string> memory;
  std::function<void(uint64_t address)> on_read = [](uint64_t) {};
  size_t reads = 0;

  void Publish(const std::string& service, uint64_t published, uint32_t size = 0) {
    const auto field = [](int number, const std::string& bytes) {
      return absl::StrCat(std::string(1, static_cast<char>(number << 3 | 2)),
                          std::string(1, static_cast<char>(bytes.size())), bytes);
    };
    const std::string payload = field(1, field(1, field(1, "service.name") + field(2, field(1, service))) +
                                             field(1, field(1, "k8s.pod.name") + field(2, field(1, "pod-of-another"))));
    memory[kPayload] = payload;
    std::string header = "OTEL_CTX";
    const auto add = [&](auto value) {
      char raw[sizeof value];
      std::memcpy(raw, &value, sizeof value);
      header.append(raw, sizeof value);
    };
    add(uint32_t{2});
    add(size == 0 ? static_cast<uint32_t>(payload.size()) : size);
    add(published);
    add(kPayload);
    memory[kMapping] = header;
  }
};

class FakeMemory : public MemoryReader {
 public:
  explicit FakeMemory(FakeTarget& target) : target_(target) {}
  bool Read(uint64_t address, std::span<std::byte> into) override {
    ++target_.reads;
    const auto found = target_.memory.find(address);
    if (found == target_.memory.end() || found->second.size() < into.size()) return false;
    std::memcpy(into.data(), found->second.data(), into.size());
    target_.on_read(address);
    return true;
  }

 private:
  FakeTarget& target_;
};

class LabelReaderTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "label_reader_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    proc_ = pattern;
    fs::create_directories(proc_ / "42" / "root");
    WriteStat(100);
    Write("maps", kContextMaps);
    Write("environ", std::string("OTEL_SERVICE_NAME=from-environment\0POD_NAME=p\0", 47));
    process_.emplace(ProcessKey{42, 1}, TargetFiles(proc_.string(), 42));
    process_->comm = "web";
    process_->started_boot_ns = 1'000'000'000;
  }
  void TearDown() override { fs::remove_all(proc_); }

  void Write(const std::string& name, const std::string& text) { std::ofstream(proc_ / "42" / name) << text; }
  void WriteStat(int start_ticks) {
    Write("stat", absl::StrCat("42 (web) S 1 1 1 0 -1 0 0 0 0 0 5 7 0 0 20 0 1 0 ", start_ticks,
                               " 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"));
  }
  std::string Service() { return reader_.Of(process_->key).service(); }
  std::string Pod() { return reader_.Of(process_->key).Get(LabelKey::kKubernetesPod); }
  void Read(uint64_t second) { reader_.Read(*process_, true, {second * kSecondNs}); }

  fs::path proc_;
  FakeTarget target_;
  Notices notices_;
  LabelReader reader_{[this](uint32_t) -> absl::StatusOr<std::unique_ptr<MemoryReader>> {
                        return std::make_unique<FakeMemory>(target_);
                      },
                      notices_};
  std::optional<Process> process_;
};

TEST_F(LabelReaderTest, WhatIsPublishedWinsOverTheEnvironment) {
  target_.Publish("published", 5);
  Read(1);
  EXPECT_EQ(Service(), "published");
  EXPECT_TRUE(notices_.kept().empty());
}

TEST_F(LabelReaderTest, NothingPublishedIsTheEnvironment) {
  Write("maps", "00400000-00401000 r-xp 00001000 08:01 77 /usr/bin/app\n");
  Read(1);
  EXPECT_EQ(Service(), "from-environment");
  EXPECT_EQ(target_.reads, 0u);
  EXPECT_TRUE(notices_.kept().empty());
}

TEST_F(LabelReaderTest, NothingIsReadOfOtherPrograms) {
  target_.Publish("published", 5);
  reader_.Read(*process_, /*is_dotnet=*/false, {kSecondNs});
  EXPECT_TRUE(reader_.Of(process_->key).empty());
  EXPECT_EQ(target_.reads, 0u);
}

TEST_F(LabelReaderTest, OnlyAProcessInAContainerSaysItsPod) {
  target_.Publish("published", 5);
  Read(1);
  EXPECT_EQ(Pod(), "");
  process_->container = ContainerOf(kContainer, "");
  ++process_->exec_count;
  Read(1);
  EXPECT_EQ(Pod(), "pod-of-another");
}

TEST_F(LabelReaderTest, WhatTheNodeSaysOfAPlaceWinsOverWhatTheProcessSays) {
  target_.Publish("published", 5);
  process_->container = ContainerOf(kContainer, "");
  ProcessLabels place;
  place.Set(LabelKey::kKubernetesNamespace, "prod");
  EXPECT_FALSE(reader_.HasPlace(*process_));
  reader_.SetPlace(*process_, place);
  EXPECT_TRUE(reader_.HasPlace(*process_));
  Read(1);
  EXPECT_EQ(Service(), "published");
  EXPECT_EQ(reader_.Of(process_->key).Get(LabelKey::kKubernetesNamespace), "prod");
  EXPECT_EQ(Pod(), "") << "a claim does not mix with what the node knows";
  ++process_->exec_count;
  process_->ends->Announce(process_->key);
  EXPECT_EQ(Pod(), "") << "not for a moment: an exec moves no process into another pod";
  Read(2);
  EXPECT_EQ(reader_.Of(process_->key).Get(LabelKey::kKubernetesNamespace), "prod");
  EXPECT_FALSE(reader_.HasPlace(*process_)) << "the new program may be in another control group";
  reader_.SetPlace(*process_, {});
  EXPECT_EQ(Pod(), "pod-of-another") << "the node says nothing any more";
}

TEST_F(LabelReaderTest, ThePlaceOfOtherProgramsIsKnownToo) {
  ProcessLabels place;
  place.Set(LabelKey::kKubernetesPod, "shop-1");
  reader_.SetPlace(*process_, place);
  EXPECT_TRUE(reader_.IsDue(*process_, {kSecondNs}));
  reader_.Read(*process_, /*is_dotnet=*/false, {kSecondNs});
  EXPECT_EQ(Pod(), "shop-1");
  reader_.Forget(process_->key);
  EXPECT_EQ(Pod(), "");
}

TEST_F(LabelReaderTest, AChangeIsSeenAndTheSameIsNotReadAgain) {
  target_.Publish("one", 5);
  Read(1);
  const size_t reads = target_.reads;
  Read(2);
  EXPECT_EQ(target_.reads, reads) << "it is not due";
  Read(11);
  EXPECT_EQ(target_.reads, reads + 1) << "the header only";
  target_.Publish("two", 6);
  Read(21);
  EXPECT_EQ(Service(), "two");
}

TEST_F(LabelReaderTest, WhatChangesMeanwhileIsReadAgain) {
  target_.Publish("one", 5);
  bool changed = false;
  target_.on_read = [&](uint64_t address) {
    if (address == kPayload && !std::exchange(changed, true)) target_.Publish("two", 6);
  };
  Read(1);
  EXPECT_EQ(Service(), "two");
}

TEST_F(LabelReaderTest, AProcessThatChangesItAllTheTimeGetsNoNameOfThis) {
  uint64_t published = 5;
  target_.Publish("one", published);
  target_.on_read = [&](uint64_t address) {
    if (address == kPayload) target_.Publish("other", ++published);
  };
  Read(1);
  EXPECT_EQ(Service(), "from-environment");
  EXPECT_LT(target_.reads, 20u);
}

TEST_F(LabelReaderTest, NamesWithoutEndAreNotTaken) {
  for (uint64_t i = 1; i < 100; ++i) {
    target_.Publish(absl::StrCat("name", i), i);
    Read(i * 20);
  }
  EXPECT_EQ(Service(), "name16");
  ASSERT_EQ(notices_.kept().size(), 1u);
  EXPECT_THAT(notices_.kept()[0].message, HasSubstr("changed too often"));
}

TEST_F(LabelReaderTest, AHugePayloadIsANotice) {
  target_.Publish("huge", 5, 0xffffffff);
  Read(1);
  EXPECT_EQ(Service(), "from-environment");
  ASSERT_EQ(notices_.kept().size(), 1u);
  EXPECT_THAT(notices_.kept()[0].message, HasSubstr("4294967295 bytes"));
}

TEST_F(LabelReaderTest, APayloadThatCanNotBeReadIsANotice) {
  target_.Publish("gone", 5, 4000);
  Read(1);
  EXPECT_EQ(Service(), "from-environment");
  ASSERT_EQ(notices_.kept().size(), 1u);
  EXPECT_THAT(notices_.kept()[0].message, HasSubstr("payload can't be read"));
}

TEST_F(LabelReaderTest, TheNextOwnerOfAPidLendsNoLabels) {
  target_.Publish("other", 5);
  WriteStat(777);
  Read(1);
  EXPECT_TRUE(reader_.Of(process_->key).empty());
}

TEST_F(LabelReaderTest, AfterAnExecNothingOfTheFormerProgramIsKnown) {
  target_.Publish("one", 5);
  Read(1);
  ++process_->exec_count;
  Write("maps", "");
  Write("environ", "");
  Read(1);
  EXPECT_TRUE(reader_.Of(process_->key).empty());
}

}  // namespace
}  // namespace clrsampler
