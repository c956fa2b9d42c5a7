#include "formats/proc/cgroup_identity.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace clrsampler {
namespace {

const std::string kId(64, 'a');
constexpr char kUid[] = "0a1b2c3d-4e5f-6789-abcd-ef0123456789";
constexpr char kUidOfSystemd[] = "0a1b2c3d_4e5f_6789_abcd_ef0123456789";

void ExpectContainer(const std::string& path, ContainerRuntime runtime, const std::string& id) {
  const CgroupIdentity identity = IdentifyCgroup(path);
  EXPECT_EQ(identity.runtime, runtime) << path;
  EXPECT_EQ(identity.container_id, id) << path;
  EXPECT_EQ(identity.service, "") << path;
}

TEST(CgroupIdentityTest, ContainersOfEachRuntime) {
  ExpectContainer("/docker/" + kId, ContainerRuntime::kDocker, kId);
  ExpectContainer("/system.slice/docker-" + kId + ".scope", ContainerRuntime::kDocker, kId);
  ExpectContainer("/user.slice/user-1000.slice/user@1000.service/user.slice/docker-" + kId + ".scope",
                  ContainerRuntime::kDocker, kId);
  ExpectContainer("/system.slice/nerdctl-" + kId + ".scope", ContainerRuntime::kContainerd, kId);
  ExpectContainer("/machine.slice/libpod-" + kId + ".scope/container", ContainerRuntime::kPodman, kId);
  ExpectContainer("/libpod_parent/libpod-" + kId, ContainerRuntime::kPodman, kId);
  ExpectContainer("/lxc.payload.web-1", ContainerRuntime::kLxc, "web-1");
  ExpectContainer("/lxc/web-1/system.slice", ContainerRuntime::kLxc, "web-1");
  ExpectContainer("/machine.slice/systemd-nspawn@web.service/payload", ContainerRuntime::kNspawn, "web");
  ExpectContainer("/machine.slice/machine-web\\x2d1.scope", ContainerRuntime::kNspawn, "web-1");
  ExpectContainer("/ecs/0123456789abcdef/" + kId, ContainerRuntime::kUnknown, kId);
  ExpectContainer("/../" + kId, ContainerRuntime::kUnknown, kId);  // seen from inside another cgroup namespace
}

// libvirt gives them the unit names that systemd-nspawn gives its containers.
TEST(CgroupIdentityTest, AVirtualMachineIsNoContainer) {
  for (const char* path : {"/machine.slice/machine-qemu\\x2d3\\x2dweb.scope/libvirt/emulator",
                           "/machine.slice/machine-lxc\\x2d1234\\x2dweb.scope"}) {
    EXPECT_EQ(IdentifyCgroup(path).runtime, ContainerRuntime::kNone) << path;
    EXPECT_EQ(IdentifyCgroup(path).container_id, "") << path;
  }
  ExpectContainer("/machine.slice/systemd-nspawn@qemu-1.service", ContainerRuntime::kNspawn, "qemu-1");
  ExpectContainer("/lxc/machine-qemu-1.scope", ContainerRuntime::kLxc, "machine-qemu-1.scope");
}

struct PodCase {
  std::string path;
  PodQos qos;
  ContainerRuntime runtime;
};

TEST(CgroupIdentityTest, PodsOfBothDriversAndAllClasses) {
  const PodCase cases[] = {
      {absl::StrCat("/kubepods/burstable/pod", kUid, "/", kId), PodQos::kBurstable, ContainerRuntime::kUnknown},
      {absl::StrCat("/kubepods/besteffort/pod", kUid, "/", kId), PodQos::kBestEffort, ContainerRuntime::kUnknown},
      {absl::StrCat("/kubepods/pod", kUid, "/", kId), PodQos::kGuaranteed, ContainerRuntime::kUnknown},
      {absl::StrCat("/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod", kUidOfSystemd,
                    ".slice/cri-containerd-", kId, ".scope"),
       PodQos::kBurstable, ContainerRuntime::kContainerd},
      {absl::StrCat("/kubepods.slice/kubepods-pod", kUidOfSystemd, ".slice/crio-", kId, ".scope"), PodQos::kGuaranteed,
       ContainerRuntime::kCrio},
      {absl::StrCat("/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod", kUidOfSystemd,
                    ".slice/docker-", kId, ".scope"),
       PodQos::kBestEffort, ContainerRuntime::kDocker},
      {absl::StrCat("/system.slice/containerd.service/kubepods-burstable-pod", kUidOfSystemd,
                    ".slice:cri-containerd:", kId),
       PodQos::kBurstable, ContainerRuntime::kContainerd},
      // A cluster in containers: the node is a container itself.
      {absl::StrCat("/docker/", std::string(64, 'b'), "/kubelet.slice/kubelet-kubepods.slice/",
                    "kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-pod", kUidOfSystemd,
                    ".slice/cri-containerd-", kId, ".scope"),
       PodQos::kBurstable, ContainerRuntime::kContainerd},
  };
  for (const PodCase& one : cases) {
    const CgroupIdentity identity = IdentifyCgroup(one.path);
    EXPECT_EQ(identity.pod_uid, kUid) << one.path;
    EXPECT_EQ(identity.qos, one.qos) << one.path;
    EXPECT_EQ(identity.runtime, one.runtime) << one.path;
    EXPECT_EQ(identity.container_id, kId) << one.path;
  }
}

TEST(CgroupIdentityTest, StaticPodsHaveAHashForAUid) {
  const std::string hash(32, 'c');
  EXPECT_EQ(IdentifyCgroup(absl::StrCat("/kubepods/burstable/pod", hash, "/", kId)).pod_uid, hash);
}

TEST(CgroupIdentityTest, Services) {
  EXPECT_EQ(IdentifyCgroup("/system.slice/shop.service").service, "shop.service");
  EXPECT_EQ(IdentifyCgroup("/system.slice/shop@eu\\x2d1.service").service, "shop@eu-1.service");
  EXPECT_EQ(IdentifyCgroup("/user.slice/user-1000.slice/user@1000.service/app.slice/agent.service").service,
            "agent.service");
  EXPECT_EQ(IdentifyCgroup("/user.slice/user-1000.slice/session-1.scope").service, "");
  EXPECT_FALSE(IdentifyCgroup("/system.slice/shop.service").in_container());
}

TEST(CgroupIdentityTest, WhatOnlyLooksLikeOneIsNone) {
  for (const std::string& path :
       {std::string("/"), std::string(), "/system.slice/crio-conmon-" + kId + ".scope", std::string("/docker/abc"),
        "/system.slice/docker-" + kId.substr(1) + ".scope", std::string("/kubepods/burstable"),
        std::string("/kubepods/burstable/podXYZ"), std::string("/lxc/\x1b[2Jname"),
        "/system.slice/docker-" + std::string(64, 'G') + ".scope"}) {
    EXPECT_FALSE(IdentifyCgroup(path).in_container()) << path;
  }
}

TEST(CgroupIdentityTest, TheInnermostContainerCounts) {
  const std::string inner(64, 'd');
  ExpectContainer(absl::StrCat("/docker/", kId, "/docker/", inner), ContainerRuntime::kDocker, inner);
}

TEST(CgroupIdentityTest, ContainersWithinEachOtherAreListedFromTheOutside) {
  const std::string inner(64, 'b');
  EXPECT_EQ(ContainerIdsOf("/docker/" + kId + "/kubelet/kubepods/pod" + kUid + "/cri-containerd-" + inner + ".scope"),
            (std::vector<std::string>{kId, inner}));
  EXPECT_EQ(ContainerIdsOf("/kubepods.slice/x.slice:cri-containerd:" + kId), (std::vector<std::string>{kId}));
  EXPECT_TRUE(ContainerIdsOf("/system.slice/shop.service").empty());
  EXPECT_TRUE(ContainerIdsOf("/lxc/web-1").empty());
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "/" + inner;
  EXPECT_EQ(ContainerIdsOf("/" + kId + deep).size(), kMaxNestedContainers);
  EXPECT_EQ(ContainerIdsOf("/" + kId + deep).front(), kId) << "what is below it can't hide it";
}

}  // namespace
}  // namespace clrsampler
