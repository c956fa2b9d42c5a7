#include "inprocess/profiler_api.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "test_paths.h"

namespace clrsampler {
namespace {

using Slots = std::map<std::string, unsigned>;

// The slots by the declarations of the runtime, counted by another program: tests/testdata/inprocess/make.py.
Slots Listed(const std::string& file) {
  std::ifstream lines(TestData(absl::StrCat("inprocess/", file)));
  Slots slots;
  unsigned slot = 0;
  for (std::string name, interface; lines >> slot >> name >> interface;) slots[name] = slot;
  return slots;
}

#define SLOT(name) \
  { #name, k##name }

TEST(ProfilerSlotsTest, CallbacksAreInTheOrderOfTheDeclaration) {
  const Slots ours = {
      SLOT(Initialize),
      SLOT(Shutdown),
      SLOT(AppDomainCreationStarted),
      SLOT(AppDomainCreationFinished),
      SLOT(AppDomainShutdownStarted),
      SLOT(AppDomainShutdownFinished),
      SLOT(AssemblyLoadStarted),
      SLOT(AssemblyLoadFinished),
      SLOT(AssemblyUnloadStarted),
      SLOT(AssemblyUnloadFinished),
      SLOT(ModuleLoadStarted),
      SLOT(ModuleLoadFinished),
      SLOT(ModuleUnloadStarted),
      SLOT(ModuleUnloadFinished),
      SLOT(ModuleAttachedToAssembly),
      SLOT(ClassLoadStarted),
      SLOT(ClassLoadFinished),
      SLOT(ClassUnloadStarted),
      SLOT(ClassUnloadFinished),
      SLOT(FunctionUnloadStarted),
      SLOT(JITCompilationStarted),
      SLOT(JITCompilationFinished),
      SLOT(JITCachedFunctionSearchStarted),
      SLOT(JITCachedFunctionSearchFinished),
      SLOT(JITFunctionPitched),
      SLOT(JITInlining),
      SLOT(ThreadCreated),
      SLOT(ThreadDestroyed),
      SLOT(ThreadAssignedToOSThread),
      SLOT(RemotingClientInvocationStarted),
      SLOT(RemotingClientSendingMessage),
      SLOT(RemotingClientReceivingReply),
      SLOT(RemotingClientInvocationFinished),
      SLOT(RemotingServerReceivingMessage),
      SLOT(RemotingServerInvocationStarted),
      SLOT(RemotingServerInvocationReturned),
      SLOT(RemotingServerSendingReply),
      SLOT(UnmanagedToManagedTransition),
      SLOT(ManagedToUnmanagedTransition),
      SLOT(RuntimeSuspendStarted),
      SLOT(RuntimeSuspendFinished),
      SLOT(RuntimeSuspendAborted),
      SLOT(RuntimeResumeStarted),
      SLOT(RuntimeResumeFinished),
      SLOT(RuntimeThreadSuspended),
      SLOT(RuntimeThreadResumed),
      SLOT(MovedReferences),
      SLOT(ObjectAllocated),
      SLOT(ObjectsAllocatedByClass),
      SLOT(ObjectReferences),
      SLOT(RootReferences),
      SLOT(ExceptionThrown),
      SLOT(ExceptionSearchFunctionEnter),
      SLOT(ExceptionSearchFunctionLeave),
      SLOT(ExceptionSearchFilterEnter),
      SLOT(ExceptionSearchFilterLeave),
      SLOT(ExceptionSearchCatcherFound),
      SLOT(ExceptionOSHandlerEnter),
      SLOT(ExceptionOSHandlerLeave),
      SLOT(ExceptionUnwindFunctionEnter),
      SLOT(ExceptionUnwindFunctionLeave),
      SLOT(ExceptionUnwindFinallyEnter),
      SLOT(ExceptionUnwindFinallyLeave),
      SLOT(ExceptionCatcherEnter),
      SLOT(ExceptionCatcherLeave),
      SLOT(COMClassicVTableCreated),
      SLOT(COMClassicVTableDestroyed),
      SLOT(ExceptionCLRCatcherFound),
      SLOT(ExceptionCLRCatcherExecute),
      SLOT(ThreadNameChanged),
      SLOT(GarbageCollectionStarted),
      SLOT(SurvivingReferences),
      SLOT(GarbageCollectionFinished),
      SLOT(FinalizeableObjectQueued),
      SLOT(RootReferences2),
      SLOT(HandleCreated),
      SLOT(HandleDestroyed),
      SLOT(InitializeForAttach),
      SLOT(ProfilerAttachComplete),
      SLOT(ProfilerDetachSucceeded),
      SLOT(ReJITCompilationStarted),
      SLOT(GetReJITParameters),
      SLOT(ReJITCompilationFinished),
      SLOT(ReJITError),
      SLOT(MovedReferences2),
      SLOT(SurvivingReferences2),
      SLOT(ConditionalWeakTableElementReferences),
      SLOT(GetAssemblyReferences),
      SLOT(ModuleInMemorySymbolsUpdated),
      SLOT(DynamicMethodJITCompilationStarted),
      SLOT(DynamicMethodJITCompilationFinished),
      SLOT(DynamicMethodUnloaded),
      SLOT(EventPipeEventDelivered),
      SLOT(EventPipeProviderCreated),
      SLOT(LoadAsNotificationOnly),
  };
  EXPECT_EQ(ours, Listed("callback_slots.txt"));
  EXPECT_EQ(ours.size() + 3, kCallbackSlots);
}

// Each is in its listing under its name.
void ExpectListed(const Slots& ours, const std::string& file) {
  const Slots listed = Listed(file);
  for (const auto& [name, slot] : ours) {
    const auto there = listed.find(name);
    ASSERT_NE(there, listed.end()) << name;
    EXPECT_EQ(slot, there->second) << name;
  }
}

TEST(ProfilerSlotsTest, FunctionsOfTheRuntimeAreInTheirSlots) {
  ExpectListed({SLOT(GetClassFromObject), SLOT(IsArrayClass), SLOT(GetModuleMetaData), SLOT(GetAssemblyInfo),
                SLOT(GetFunctionInfo2), SLOT(GetClassIDInfo2), SLOT(GetObjectGeneration), SLOT(RequestProfilerDetach),
                SLOT(GetModuleInfo2), SLOT(EnumJITedFunctions2), SLOT(GetObjectSize2), SLOT(SetEventMask2),
                SLOT(GetDynamicFunctionInfo), SLOT(GetNativeCodeStartAddresses), SLOT(GetILToNativeMapping3)},
               "info_slots.txt");
  ExpectListed({SLOT(GetTypeDefProps), SLOT(GetMethodProps), SLOT(GetNestedClassProps)}, "metadata_slots.txt");
}

#undef SLOT

// The library itself, as a runtime loads it.
class LibraryTest : public testing::Test {
 protected:
  void SetUp() override {
    library_ = dlopen(ProfilerLibrary().c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
    using Get = Hresult (*)(const Guid*, const Guid*, void**);
    get_ = reinterpret_cast<Get>(dlsym(library_, "DllGetClassObject"));
    ASSERT_NE(get_, nullptr);
  }
  void TearDown() override {
    if (library_ != nullptr) dlclose(library_);
  }
  void* Profiler() {
    void* factory = nullptr;
    EXPECT_EQ(get_(&kProfilerClass, &kClassFactoryInterface, &factory), kOk);
    void* profiler = nullptr;
    void* const nobody = nullptr;
    EXPECT_EQ(CallSlot(factory, kCreateInstance, nobody, &kCallbackInterfaces[0], &profiler), kOk);
    return profiler;
  }

  void* library_ = nullptr;
  Hresult (*get_)(const Guid*, const Guid*, void**) = nullptr;
};

TEST_F(LibraryTest, ItIsEveryVersionOfTheCallback) {
  void* const profiler = Profiler();
  ASSERT_NE(profiler, nullptr);
  for (const Guid& interface : kCallbackInterfaces) {
    void* same = nullptr;
    EXPECT_EQ(CallSlot(profiler, kQueryInterface, &interface, &same), kOk);
    EXPECT_EQ(same, profiler);
  }
  void* other = profiler;
  EXPECT_EQ(CallSlot(profiler, kQueryInterface, &kInfoInterface, &other), kNoInterface);
  EXPECT_EQ(other, nullptr);
}

TEST_F(LibraryTest, AStrangersClassIsNotAvailable) {
  void* factory = this;
  EXPECT_EQ(get_(&kInfoInterface, &kClassFactoryInterface, &factory), kClassNotAvailable);
  EXPECT_EQ(factory, nullptr);
}

TEST_F(LibraryTest, EverySlotIsAFunctionOfTheLibrary) {
  void* const* table = *static_cast<void* const* const*>(Profiler());
  for (unsigned slot = 0; slot < kCallbackSlots; ++slot) {
    Dl_info where{};
    ASSERT_NE(dladdr(table[slot], &where), 0) << slot;
    EXPECT_EQ(std::string(where.dli_fname), ProfilerLibrary()) << slot;
  }
}

TEST_F(LibraryTest, ItOnlyListensAndLetsTheCompilerInline) {
  void* const profiler = Profiler();
  int32_t only = 0, may = 0;
  EXPECT_EQ(CallSlot(profiler, kLoadAsNotificationOnly, &only), kOk);
  EXPECT_EQ(only, 1);
  EXPECT_EQ(CallSlot(profiler, kJITInlining, RuntimeId{1}, RuntimeId{2}, &may), kOk);
  EXPECT_EQ(may, 1);
}

TEST_F(LibraryTest, NotificationsWithoutASessionAreQuiet) {
  void* const profiler = Profiler();
  EXPECT_EQ(CallSlot(profiler, kThreadCreated, RuntimeId{1}), kOk);
  EXPECT_EQ(CallSlot(profiler, kExceptionThrown, RuntimeId{1}), kOk);
  EXPECT_EQ(CallSlot(profiler, kProfilerDetachSucceeded), kOk);
}

}  // namespace
}  // namespace clrsampler
