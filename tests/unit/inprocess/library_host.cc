#include "library_host.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <thread>
#include <utility>

#include "os/fd_message.h"
#include "test_paths.h"

namespace clrsampler {
namespace {

LibraryHost* g_host = nullptr;

Hresult NoFunction(void*) { return kFailed; }

Hresult QueryInfo(void* object, const Guid*, void** out) {
  *out = object;
  return kOk;
}

Hresult SetEventMask(void*, uint32_t /*low*/, uint32_t /*high*/) {
  ++g_host->masks;
  if (g_host->on_mask != nullptr) g_host->on_mask();
  return kOk;
}

Hresult RequestDetach(void*, uint32_t /*milliseconds*/) {
  ++g_host->detach_requests;
  return g_host->detach_answer;
}

// The agent's side of one connection.
UniqueFd AcceptAndHandOver(int listener, const SharedRing& ring, uint64_t kinds) {
  UniqueFd connection(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  const InprocessConfig config{kInprocessMagic, ring.memory().size(), kinds, 0, 0};
  const absl::string_view bytes(reinterpret_cast<const char*>(&config), sizeof config);
  EXPECT_EQ(SendFdMessage(connection.get(), bytes, ring.file().get(), 0), static_cast<ssize_t>(bytes.size()));
  return connection;
}

}  // namespace

RuntimeTable::RuntimeTable() {
  for (void*& slot : table_) slot = reinterpret_cast<void*>(NoFunction);
}

LibraryHost::LibraryHost() {
  g_host = this;
  info_.Set(kQueryInterface, QueryInfo);
  info_.Set(kSetEventMask2, SetEventMask);
  info_.Set(kRequestProfilerDetach, RequestDetach);
  library_ = dlopen(ProfilerLibrary().c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) {
    ADD_FAILURE() << dlerror();
    abort();
  }
  using Get = Hresult (*)(const Guid*, const Guid*, void**);
  const auto get = reinterpret_cast<Get>(dlsym(library_, "DllGetClassObject"));
  void* factory = nullptr;
  void* const nobody = nullptr;
  EXPECT_EQ(get(&kProfilerClass, &kClassFactoryInterface, &factory), kOk);
  EXPECT_EQ(CallSlot(factory, kCreateInstance, nobody, &kCallbackInterfaces[0], &profiler_), kOk);
}

LibraryHost::~LibraryHost() {
  CloseAgent();
  // A runtime says this once it has taken a request. Waits for the library's thread.
  Call(kProfilerDetachSucceeded);
  dlclose(library_);
  g_host = nullptr;
}

Hresult LibraryHost::Attach(uint64_t kinds) {
  auto ring = SharedRing::Create(1 << 20);
  if (!ring.ok()) return kFailed;
  ring_.emplace(*std::move(ring));
  auto reader = InprocessRingReader::Create(ring_->memory());
  if (!reader.ok()) return kFailed;
  reader_.emplace(*std::move(reader));

  std::string folder = (std::filesystem::temp_directory_path() / "library_host_XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return kFailed;
  const std::string path = folder + "/agent";
  const UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  if (bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener.get(), 1) != 0) {
    return kFailed;
  }
  std::thread agent([&] { connection_ = AcceptAndHandOver(listener.get(), *ring_, kinds); });
  const Hresult result = Call(kInitializeForAttach, info_.object(), path.data(), static_cast<uint32_t>(path.size()));
  agent.join();
  std::filesystem::remove_all(folder);
  return result;
}

std::vector<LibraryRecord> LibraryHost::Records() {
  std::vector<LibraryRecord> records;
  const absl::Status status =
      reader_->Drain(1 << 20, [&](LibraryRecord record) { records.push_back(std::move(record)); });
  EXPECT_TRUE(status.ok()) << status;
  return records;
}

}  // namespace clrsampler
