#include "formats/labels/environment_labels.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_join.h"

namespace clrsampler {
namespace {

ProcessLabels Of(std::initializer_list<std::string> variables) {
  return EnvironmentLabels(absl::StrJoin(variables, std::string(1, '\0')));
}

TEST(EnvironmentLabelsTest, TheListIsDecoded) {
  const ProcessLabels labels =
      Of({"PATH=/bin", "OTEL_RESOURCE_ATTRIBUTES= service.name = shop%20web ,service.version=1%2C2,x=y,,=,service",
          "HOME=/"});
  EXPECT_EQ(labels.service(), "shop web");
  EXPECT_EQ(labels.Get(LabelKey::kServiceVersion), "1,2");
}

TEST(EnvironmentLabelsTest, AnEntryThatCanNotBeDecodedIsLeftOut) {
  const ProcessLabels labels =
      Of({"OTEL_RESOURCE_ATTRIBUTES=service.name=a%2,service.version=%zz,service.namespace=n"});
  EXPECT_EQ(labels.service(), "");
  EXPECT_EQ(labels.Get(LabelKey::kServiceVersion), "");
  EXPECT_EQ(labels.Get(LabelKey::kServiceNamespace), "n");
}

TEST(EnvironmentLabelsTest, TheNameOfItsOwnVariableWins) {
  EXPECT_EQ(Of({"OTEL_RESOURCE_ATTRIBUTES=service.name=list", "OTEL_SERVICE_NAME=own"}).service(), "own");
  EXPECT_EQ(Of({"OTEL_RESOURCE_ATTRIBUTES=service.name=list", "OTEL_SERVICE_NAME="}).service(), "list");
}

TEST(EnvironmentLabelsTest, ThePod) {
  const ProcessLabels labels = Of({"POD_NAME=shop-1", "POD_NAMESPACE=prod", "XPOD_NAME=no"});
  EXPECT_EQ(labels.Get(LabelKey::kKubernetesPod), "shop-1");
  EXPECT_EQ(labels.Get(LabelKey::kKubernetesNamespace), "prod");
}

TEST(EnvironmentLabelsTest, AHugeListIsLeftOut) {
  EXPECT_TRUE(Of({"OTEL_RESOURCE_ATTRIBUTES=service.name=a," + std::string(20000, ',')}).empty());
}

}  // namespace
}  // namespace clrsampler
