#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "library_host.h"

namespace clrsampler {
namespace {

constexpr uint32_t kMethods = 20;
constexpr uint32_t kMethodOfTheUnload = 3;
constexpr auto kMoment = std::chrono::milliseconds(200);

// The runtime of these tests, and what it is asked for.
struct Methods {
  uint32_t next = 0;
  uint32_t asked = 0;
  uint32_t asked_beside_the_unload = 0;
  std::atomic<bool> unloads = false;   // another thread has begun to
  std::atomic<bool> unloaded = false;  // the library has let it
  void (*at_method)(uint32_t) = nullptr;
};
Methods* g_methods = nullptr;
RuntimeTable* g_enumerator = nullptr;

struct MethodIdentity {
  RuntimeId function;
  uintptr_t recompilation;
};

Hresult EnumMethods(void*, void** out) {
  *out = g_enumerator->object();
  return kOk;
}
Hresult CountMethods(void*, uint32_t* count) {
  *count = kMethods;
  return kOk;
}
Hresult NextMethod(void*, uint32_t /*wanted*/, MethodIdentity* method, uint32_t* got) {
  if (g_methods->next == kMethods) return kFailed;
  *method = {++g_methods->next, 0};
  *got = 1;
  return kOk;
}
Hresult BodiesOf(void*, RuntimeId function, uintptr_t /*recompilation*/, uint32_t /*room*/, uint32_t* count,
                 uintptr_t* bodies) {
  ++g_methods->asked;
  if (g_methods->at_method != nullptr) g_methods->at_method(static_cast<uint32_t>(function));
  if (g_methods->unloaded) ++g_methods->asked_beside_the_unload;
  *count = 1;
  bodies[0] = 0x1000 * function;
  return kOk;
}
Hresult MapOf(void*, uintptr_t /*code*/, uint32_t /*room*/, uint32_t* count, InprocessMapEntry* entries) {
  *count = 1;
  entries[0] = {0, 0, 4};
  return kOk;
}

class ILMapsTest : public testing::Test {
 protected:
  ILMapsTest() {
    g_methods = &methods_;
    g_enumerator = &enumerator_;
    g_library = &host_;
    enumerator_.Set(kNext, NextMethod);
    enumerator_.Set(kGetCount, CountMethods);
    host_.info().Set(kEnumJITedFunctions2, EnumMethods);
    host_.info().Set(kGetNativeCodeStartAddresses, BodiesOf);
    host_.info().Set(kGetILToNativeMapping3, MapOf);
    EXPECT_EQ(host_.BeginAttach(InprocessKindBit(InprocessKind::kILToNativeMap)), kOk);
  }
  static inline LibraryHost* g_library = nullptr;

  Methods methods_;
  RuntimeTable enumerator_;
  LibraryHost host_;
};

TEST_F(ILMapsTest, AllMethodsHaveTheirs) {
  host_.Call(kProfilerAttachComplete);
  const std::vector<LibraryRecord> records = host_.Records();
  ASSERT_EQ(records.size(), kMethods);
  EXPECT_EQ(records[0].values[1], 0x1000u);
  EXPECT_EQ(records[0].map.size(), 1u);
  EXPECT_EQ(host_.left_out(), 0u);
}

TEST_F(ILMapsTest, NoMethodIsAskedForWhoseModuleMayBeGone) {
  // Each method from the third one on takes a moment, unless the unload is through before.
  methods_.at_method = [](uint32_t method) {
    if (method < kMethodOfTheUnload) return;
    g_methods->unloads = true;
    const auto until = std::chrono::steady_clock::now() + kMoment;
    while (!g_methods->unloaded && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  };
  std::thread finalizer([&] {
    while (!methods_.unloads) std::this_thread::yield();
    host_.Call(kModuleUnloadStarted, RuntimeId{7});
    methods_.unloaded = true;
  });
  host_.Call(kProfilerAttachComplete);
  finalizer.join();
  EXPECT_EQ(methods_.asked_beside_the_unload, 0u);
  // The other thread got no CPU for 3.6 s otherwise.
  EXPECT_GT(host_.left_out(), 0u);
  EXPECT_EQ(methods_.asked + host_.left_out(), kMethods);
  EXPECT_EQ(host_.Records().size(), methods_.asked);
}

TEST_F(ILMapsTest, AnUnloadDoesNotWaitForEver) {
  methods_.at_method = [](uint32_t method) {
    if (method != kMethodOfTheUnload) return;
    // As if the walk waited for what the unloading thread holds.
    std::thread finalizer([] { g_library->Call(kModuleUnloadStarted, RuntimeId{7}); });
    finalizer.join();
  };
  host_.Call(kProfilerAttachComplete);
  EXPECT_EQ(methods_.asked, kMethodOfTheUnload);
}

TEST_F(ILMapsTest, WithoutAnAgentTheWalkEnds) {
  methods_.at_method = [](uint32_t method) {
    if (method != kMethodOfTheUnload) return;
    g_library->CloseAgent();
    // The library's thread takes the mask back once it has seen the end and is silent.
    while (g_library->masks < 2) std::this_thread::yield();
    std::this_thread::sleep_for(kMoment);
    EXPECT_EQ(g_library->detach_requests, 0) << "the runtime does not count this call: its code would be unmapped";
  };
  host_.Call(kProfilerAttachComplete);
  EXPECT_EQ(methods_.asked, kMethodOfTheUnload);
}

}  // namespace
}  // namespace clrsampler
