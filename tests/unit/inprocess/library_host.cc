#include "library_host.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <thread>
#include <utility>

#include "test_paths.h"

namespace clrsampler {
namespace {

LibraryHost* g_host = nullptr;

Hresult NoFunction(void*) { return kFailed; }

Hresult QueryInfo(void* object, const Guid*, void** out) {
  *out = object;
  return kOk;
}

Hresult SetEventMask(void*, uint32_t low, uint32_t /*high*/) {
  g_host->mask = low;
  ++g_host->masks;
  if (g_host->on_mask != nullptr) g_host->on_mask();
  return kOk;
}

Hresult RequestDetach(void*, uint32_t /*milliseconds*/) {
  ++g_host->detach_requests;
  return g_host->detach_answer;
}

// The agent's side of one connection. The library may have left by then.
UniqueFd AcceptAndHandOver(int listener, const SharedRing& ring, InprocessConfig config, int descriptors) {
  UniqueFd connection(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  iovec part{&config, sizeof config};
  const std::vector<int> files(static_cast<size_t>(descriptors), ring.file().get());
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(4 * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = CMSG_SPACE(files.size() * sizeof(int));
  cmsghdr* beside = CMSG_FIRSTHDR(&message);
  beside->cmsg_level = SOL_SOCKET;
  beside->cmsg_type = SCM_RIGHTS;
  beside->cmsg_len = CMSG_LEN(files.size() * sizeof(int));
  std::memcpy(CMSG_DATA(beside), files.data(), files.size() * sizeof(int));
  sendmsg(connection.get(), &message, MSG_NOSIGNAL);
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

Hresult LibraryHost::BeginAttach(uint64_t kinds) {
  return MeetAgent(kinds, [this](const std::string& path) {
    return Call(kInitializeForAttach, info_.object(), path.data(), static_cast<uint32_t>(path.size()));
  });
}

Hresult LibraryHost::Start(uint64_t kinds) {
  return MeetAgent(kinds, [this](const std::string& path) {
    setenv("CLRSAMPLER_LIBRARY_SOCKET", path.c_str(), 1);
    return Call(kInitialize, info_.object());
  });
}

Hresult LibraryHost::MeetAgent(uint64_t kinds, absl::FunctionRef<Hresult(const std::string&)> call) {
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
  if (bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return kFailed;
  // The kernel keeps the user who listens.
  const uid_t user = geteuid();
  const bool other = agent_user != user;
  const bool listens = (!other || seteuid(agent_user) == 0) && listen(listener.get(), 1) == 0;
  if ((other && seteuid(user) != 0) || !listens) return kFailed;
  const InprocessConfig config{kInprocessMagic, ring_->memory().size(), kinds, wanted_mask, 0};
  std::thread agent([&] { connection_ = AcceptAndHandOver(listener.get(), *ring_, config, descriptors); });
  const Hresult result = call(path);
  agent.join();
  std::filesystem::remove_all(folder);
  return result;
}

bool LibraryHost::StopAgent() {
  const timeval patience{20, 0};
  setsockopt(connection_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  char ignored = 0;
  return shutdown(connection_.get(), SHUT_WR) == 0 && recv(connection_.get(), &ignored, 1, 0) == 0;
}

std::vector<LibraryRecord> LibraryHost::Records() {
  std::vector<LibraryRecord> records;
  const absl::Status status =
      reader_->Drain(1 << 20, [&](LibraryRecord record) { records.push_back(std::move(record)); });
  EXPECT_TRUE(status.ok()) << status;
  return records;
}

}  // namespace clrsampler
