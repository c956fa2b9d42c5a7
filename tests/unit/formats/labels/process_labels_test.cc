#include "formats/labels/process_labels.h"

#include <gtest/gtest.h>

#include <string>

namespace clrsampler {
namespace {

TEST(ProcessLabelsTest, ControlCharactersAndBadUtf8AreReplaced) {
  ProcessLabels labels;
  labels.Set(LabelKey::kServiceName, "a\nb\x1b[31m\xC2\x9Bz\xFF");
  EXPECT_EQ(labels.service(), "a_b_[31m_z\xEF\xBF\xBD");
}

TEST(ProcessLabelsTest, AValueThatIsTooLongIsLeftOut) {
  ProcessLabels labels;
  labels.Set(LabelKey::kServiceVersion, std::string(kMaxLabelBytes, 'v'));
  EXPECT_EQ(labels.Get(LabelKey::kServiceVersion).size(), kMaxLabelBytes);
  labels.Set(LabelKey::kServiceName, std::string(kMaxLabelBytes + 1, 'v'));
  labels.Set(LabelKey::kServiceNamespace, std::string(kMaxLabelBytes, '\xFF'));
  EXPECT_EQ(labels.service(), "");
  EXPECT_EQ(labels.Get(LabelKey::kServiceNamespace), "");
}

TEST(ProcessLabelsTest, WhatIsKnownIsNotOverwritten) {
  ProcessLabels first, second;
  first.Set(LabelKey::kKubernetesPod, "shop-1");
  second.Set(LabelKey::kKubernetesPod, "other");
  second.Set(LabelKey::kServiceName, "shop");
  first.FillFrom(second);
  EXPECT_EQ(first.Get(LabelKey::kKubernetesPod), "shop-1");
  EXPECT_EQ(first.service(), "shop");
  first.DropPlace();
  EXPECT_EQ(first.Get(LabelKey::kKubernetesPod), "");
  EXPECT_EQ(first.service(), "shop");
}

TEST(ProcessLabelsTest, NamesThatDifferForEachProcessAreNotKept) {
  EXPECT_EQ(LabelKeyOf("deployment.environment"), LabelKey::kEnvironment);
  EXPECT_EQ(LabelKeyOf("deployment.environment.name"), LabelKey::kEnvironment);
  for (const char* name : {"service.instance.id", "process.pid", "container.id", "k8s.pod.uid", "host.name", ""}) {
    EXPECT_FALSE(LabelKeyOf(name).has_value()) << name;
  }
}

}  // namespace
}  // namespace clrsampler
