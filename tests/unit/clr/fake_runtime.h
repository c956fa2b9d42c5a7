// A .NET process as /proc and its diagnostics socket would show it: files in a temporary folder and a thread that
// answers. The process is this test itself, because the kernel says who listens on a socket.
#ifndef CLRSAMPLER_TESTS_UNIT_CLR_FAKE_RUNTIME_H_
#define CLRSAMPLER_TESTS_UNIT_CLR_FAKE_RUNTIME_H_

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "clr/diagnostics_client.h"
#include "formats/byte_reader.h"
#include "formats/runtime/diagnostics_message.h"
#include "os/clock.h"
#include "os/unique_fd.h"
#include "process/file_broker.h"

namespace clrsampler {

inline uint64_t TicksOfBoot() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  const auto hertz = static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
  return static_cast<uint64_t>(now.tv_sec) * hertz + static_cast<uint64_t>(now.tv_nsec) * hertz / 1'000'000'000;
}

// A question that hangs is given up soon. Others have time on a busy machine.
inline constexpr FilePatience kPatientBroker = {
    .answer_ns = kSecondNs, .most_ns = 60 * kSecondNs, .nursery_ns = 60 * kSecondNs};

class FakeRuntime {
 public:
  static constexpr uint32_t kNamespacePid = 7;
  // The server's answer to a request; an empty reply is none, and the connection stays open.
  using Answer = std::function<std::string(const DiagnosticsRequest&)>;

  FakeRuntime() : ticks_(TicksOfBoot() - 1000) {
    std::string pattern = "/tmp/clrsampler-ipc-XXXXXX";
    top_ = mkdtemp(pattern.data());
    std::filesystem::create_directories(process() + "/root/tmp");
    for (const char* directory : {"/fd", "/task/1", "/ns"}) std::filesystem::create_directories(process() + directory);
    Write(process() + "/ns/pid", "");
    Write(process() + "/ns/mnt", "");
    Write(process() + "/environ", absl::string_view("HOME=/\0", 7));
    WriteStat();
    SetStarted(true);
    answer_ = [this](const DiagnosticsRequest& request) { return Behave(request); };
  }
  ~FakeRuntime() {
    StopServer();
    std::filesystem::remove_all(top_);
  }

  uint32_t pid() const { return static_cast<uint32_t>(getpid()); }
  const std::string& proc_root() const { return top_; }
  std::string process() const { return absl::StrCat(top_, "/", pid()); }
  std::string InTarget(absl::string_view path) const { return absl::StrCat(process(), "/root", path); }
  std::string map() const { return InTarget("/tmp/perf-7.map"); }
  std::string leases() const { return top_ + "/leases"; }
  TargetIdentity identity() const { return {pid(), kNamespacePid, ticks_}; }
  TargetFiles files() const { return TargetFiles(top_, pid()); }
  uint64_t ticks() const { return ticks_; }
  std::string SocketName(uint64_t key) const { return absl::StrCat("/dotnet-diagnostic-7-", key, "-socket"); }

  static void Write(const std::string& path, absl::string_view text) {
    std::ofstream(path, std::ios::binary | std::ios::trunc)
        .write(text.data(), static_cast<std::streamsize>(text.size()));
  }
  void SetEnvironment(absl::string_view variables) { Write(process() + "/environ", variables); }
  // As a page of it that lies on a file system which does not answer.
  void LetEnvironmentHang() {
    unlink((process() + "/environ").c_str());
    ASSERT_EQ(mkfifo((process() + "/environ").c_str(), 0600), 0);
  }
  void SetStarted(bool started) { Write(process() + "/task/1/comm", started ? ".NET Finalizer\n" : "dotnet\n"); }
  void SetAge(uint64_t ticks) {
    ticks_ = TicksOfBoot() - ticks;
    WriteStat();
  }
  void Exit() { std::filesystem::remove(process() + "/stat"); }
  void HoldOpen(const std::string& path) { std::filesystem::create_symlink(path, process() + "/fd/5"); }
  void LetGo() { unlink((process() + "/fd/5").c_str()); }
  bool MapIsOn() const { return std::filesystem::is_symlink(process() + "/fd/5"); }

  // Begins to listen. The address is relative, since the folder's path may be longer than an address.
  void Serve(Answer answer = nullptr, std::string directory = "/tmp") {
    if (answer) answer_ = std::move(answer);
    const std::string path = InTarget(directory) + SocketName(ticks_);
    listener_ = UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const UniqueFd parent(open(InTarget(directory).c_str(), O_PATH | O_DIRECTORY));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string near = absl::StrCat("/proc/self/fd/", parent.get(), SocketName(ticks_));
    ASSERT_LT(near.size(), sizeof address.sun_path);
    near.copy(address.sun_path, near.size());
    ASSERT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0) << path;
    ASSERT_EQ(listen(listener_.get(), 16), 0);
    server_ = std::thread([this] { Loop(); });
  }
  void StopServer() {
    stop_ = true;
    if (server_.joinable()) server_.join();
    listener_.reset();
    stop_ = false;
  }

  // False while the server has something to do. Its answers are in the sockets.
  bool AllAnswered() {
    const std::unique_lock<std::mutex> turn(turn_, std::try_to_lock);
    pollfd waiting{listener_.get(), POLLIN, 0};
    return turn.owns_lock() && poll(&waiting, 1, 0) == 0;
  }

  std::vector<DiagnosticsCommand> commands() {
    const std::lock_guard<std::mutex> lock(mutex_);  // the server's thread and the test's
    return commands_;
  }

  // As a runtime would.
  std::string Behave(const DiagnosticsRequest& request) {
    const std::string zero(4, '\0');
    if (request.command == DiagnosticsCommand::kProcessInfo2) return ProcessInfo(kNamespacePid, "10.0.12");
    if (request.command == DiagnosticsCommand::kEnablePerfMap) {
      Write(map(), "7f0000000000 40 void [a] A::B()[Tier0]\n");
      LetGo();
      HoldOpen(map());
    }
    if (request.command == DiagnosticsCommand::kDisablePerfMap) LetGo();
    return EncodeDiagnosticsReply(std::nullopt, AsBytes(zero));
  }
  static std::string ProcessInfo(uint64_t pid, absl::string_view version) {
    std::string payload(reinterpret_cast<const char*>(&pid), sizeof pid);
    payload.append(16, 'c');
    for (const absl::string_view text : {absl::string_view("dotnet a.dll"), absl::string_view("Linux"),
                                         absl::string_view("x64"), absl::string_view("a"), version}) {
      const uint32_t units = static_cast<uint32_t>(text.size()) + 1;
      payload.append(reinterpret_cast<const char*>(&units), sizeof units);
      for (const char c : text) payload.append({c, '\0'});
      payload.append(2, '\0');
    }
    return EncodeDiagnosticsReply(std::nullopt, AsBytes(payload));
  }

 private:
  void WriteStat() {
    Write(process() + "/stat",
          absl::StrCat(pid(), " (dotnet) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 ", ticks_, " 0 0\n"));
  }

  void Loop() {
    std::vector<UniqueFd> unanswered;
    while (!stop_) {
      pollfd wait{listener_.get(), POLLIN, 0};
      if (poll(&wait, 1, 5) != 1) continue;
      const std::lock_guard<std::mutex> turn(turn_);
      UniqueFd connection(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      std::array<std::byte, 1024> bytes;
      const ssize_t got = recv(connection.get(), bytes.data(), bytes.size(), 0);
      if (got <= 0) continue;
      const auto request = ParseDiagnosticsRequest(std::span(bytes).first(static_cast<size_t>(got)));
      if (!request.ok() || !request->has_value()) continue;
      const std::string reply = answer_(**request);
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        commands_.push_back((*request)->command);
      }
      if (reply.empty()) {
        unanswered.push_back(std::move(connection));
      } else {
        (void)!send(connection.get(), reply.data(), reply.size(), MSG_NOSIGNAL);
      }
    }
  }

  std::string top_;
  uint64_t ticks_;
  Answer answer_;
  UniqueFd listener_;
  std::thread server_;
  std::atomic<bool> stop_{false};
  std::mutex turn_;  // held from a connection to its answer
  std::mutex mutex_;
  std::vector<DiagnosticsCommand> commands_;
};

// Stands still while the runtime has something to do, so that no patience ends because its thread gets no CPU. Else
// each look takes a moment.
class PatientClock : public Clock {
 public:
  explicit PatientClock(FakeRuntime& runtime) : runtime_(runtime) {}
  MonotonicTime Now() const override {
    if (runtime_.AllAnswered()) now_.ns += 10'000'000;
    return now_;
  }
  void Advance(uint64_t ns) { now_.ns += ns; }

 private:
  FakeRuntime& runtime_;
  mutable MonotonicTime now_{1'000'000'000'000};
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_TESTS_UNIT_CLR_FAKE_RUNTIME_H_
