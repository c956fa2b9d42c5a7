#include "formats/labels/cri_messages.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "test_paths.h"

namespace clrsampler {
namespace {

const std::string kId(64, 'a');

std::string Varint(size_t number) {
  std::string bytes;
  do {
    bytes += static_cast<char>((number & 0x7f) | (number > 0x7f ? 0x80 : 0));
    number >>= 7;
  } while (number != 0);
  return bytes;
}

std::string Part(size_t number, const std::string& bytes) {
  return absl::StrCat(Varint(number << 3 | 2), Varint(bytes.size()), bytes);
}

std::string Container(const std::string& id, const std::string& image) {
  return Part(1, Part(1, id) + Part(2, "sandbox") + Part(3, Part(1, "web") + "\x10\x03") + Part(4, image));
}

std::string Recorded(absl::string_view name) {
  std::ifstream file(TestData(absl::StrCat("cri/", name, ".bin")), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(CriMessagesTest, RequestsNameOneById) {
  EXPECT_EQ(ListContainersRequest(kId), Part(1, Part(1, kId)));
  EXPECT_EQ(ListPodSandboxRequest("sandbox"), Part(1, Part(1, "sandbox")));
  EXPECT_EQ(ContainerStatusRequest(kId), Part(1, kId));
}

TEST(CriMessagesTest, AContainerHasItsNameItsPodAndItsImage) {
  const auto found = ParseListContainers(
      Container(kId, Part(1, "sha256:" + std::string(64, 'c')) + Part(18, "registry:5000/shop/web:1.2")), kId);
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_TRUE(found->has_value());
  EXPECT_EQ((*found)->pod, "sandbox");
  EXPECT_EQ((*found)->labels.Get(LabelKey::kKubernetesContainer), "web");
  EXPECT_EQ((*found)->labels.Get(LabelKey::kImageName), "registry:5000/shop/web");
  EXPECT_EQ((*found)->labels.Get(LabelKey::kImageTag), "1.2");
}

TEST(CriMessagesTest, AnImageThatIsOnlyAnIdHasNoName) {
  const auto found = ParseListContainers(Container(kId, Part(1, "sha256:" + std::string(64, 'c'))), kId);
  ASSERT_TRUE(found.ok() && found->has_value());
  EXPECT_EQ((*found)->labels.Get(LabelKey::kImageName), "");
}

// The answer of containerd 1.6.20: tests/testdata/cri/README.md.
TEST(CriMessagesTest, AnswersOfContainerd) {
  const std::string id = "3779c209cd25f5634fdfdd3fd3e06e89f956f0b8876035e23ae1067e507faa9c";
  const auto container = ParseListContainers(Recorded("containers"), id);
  ASSERT_TRUE(container.ok() && container->has_value()) << container.status();
  EXPECT_EQ((*container)->labels.Get(LabelKey::kKubernetesContainer), "web");
  EXPECT_EQ((*container)->labels.Get(LabelKey::kKubernetesPod), "") << "its labels are not read";
  EXPECT_EQ((*container)->labels.Get(LabelKey::kImageName), "") << "it is an id there";
  const auto image = ParseContainerStatus(Recorded("status"), id);
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_EQ(image->Get(LabelKey::kImageName), "registry.example:5000/shop/web");
  EXPECT_EQ(image->Get(LabelKey::kImageTag), "1.2");
  const auto pod = ParseListPodSandbox(Recorded("pods"), (*container)->pod);
  ASSERT_TRUE(pod.ok() && pod->has_value()) << pod.status();
  EXPECT_EQ((*pod)->Get(LabelKey::kKubernetesPod), "shop-7d9f-y");
  EXPECT_EQ((*pod)->Get(LabelKey::kKubernetesNamespace), "prod");
}

TEST(CriMessagesTest, ImageReferences) {
  const auto parsed = [](absl::string_view text) {
    const ImageReference image = ParseImageReference(text);
    return std::make_pair(std::string(image.name), std::string(image.tag));
  };
  using Parts = std::pair<std::string, std::string>;
  EXPECT_EQ(parsed("nginx"), Parts("nginx", ""));
  EXPECT_EQ(parsed("nginx:1.25"), Parts("nginx", "1.25"));
  EXPECT_EQ(parsed("registry:5000/nginx"), Parts("registry:5000/nginx", ""));
  EXPECT_EQ(parsed("registry:5000/a/b:c@sha256:00"), Parts("registry:5000/a/b", "c"));
  EXPECT_EQ(parsed("nginx@sha256:00"), Parts("nginx", ""));
  EXPECT_EQ(parsed("sha256:00"), Parts("", ""));
  EXPECT_EQ(parsed(kId), Parts("", ""));
  EXPECT_EQ(parsed(""), Parts("", ""));
}

TEST(CriMessagesTest, APodHasItsNameAndItsNamespace) {
  const std::string metadata = Part(1, "shop-1") + Part(2, "uid-7") + Part(3, "prod");
  const auto found = ParseListPodSandbox(Part(1, Part(1, "sandbox") + Part(2, metadata)), "sandbox");
  ASSERT_TRUE(found.ok() && found->has_value());
  EXPECT_EQ((*found)->Get(LabelKey::kKubernetesPod), "shop-1");
  EXPECT_EQ((*found)->Get(LabelKey::kKubernetesNamespace), "prod");
}

TEST(CriMessagesTest, NoItemIsNotKnown) {
  const auto container = ParseListContainers("", kId);
  EXPECT_TRUE(container.ok() && !container->has_value());
  const auto pod = ParseListPodSandbox("", "sandbox");
  EXPECT_TRUE(pod.ok() && !pod->has_value());
}

TEST(CriMessagesTest, AnAnswerAboutAnotherOneIsAnError) {
  EXPECT_FALSE(ParseListContainers(Container(std::string(64, 'b'), ""), kId).ok());
  const auto both = ParseListContainers(Container(std::string(64, 'b'), "") + Container(kId, ""), kId);
  EXPECT_TRUE(both.ok() && both->has_value()) << "a runtime that takes no filters";
  EXPECT_FALSE(ParseListPodSandbox(Part(1, Part(1, "sandbox2")), "sandbox").ok());
  EXPECT_FALSE(ParseContainerStatus(Part(1, Part(1, std::string(64, 'b'))), kId).ok());
}

TEST(CriMessagesTest, DamagedAnswersAreErrors) {
  const std::string good = Container(kId, Part(18, "web:1"));
  for (size_t size = 1; size < good.size(); ++size) {
    EXPECT_FALSE(ParseListContainers(absl::string_view(good).substr(0, size), kId).ok()) << size;
  }
  EXPECT_FALSE(ParseListContainers(std::string(kMaxCriAnswerBytes + 1, '\0'), kId).ok());
}

}  // namespace
}  // namespace clrsampler
