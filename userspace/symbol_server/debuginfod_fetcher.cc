#include "symbol_server/symbol_fetcher.h"

#ifdef CLRSAMPLER_HAVE_DEBUGINFOD
#include <elfutils/debuginfod.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "os/unique_fd.h"
#include "os/loaded_library.h"
#endif

#include "status/status.h"

namespace clrsampler {

#ifdef CLRSAMPLER_HAVE_DEBUGINFOD
namespace {

struct Debuginfod {
  LoadedLibrary library{DEBUGINFOD_SONAME};
  decltype(debuginfod_begin)* begin = nullptr;
  decltype(debuginfod_end)* end = nullptr;
  decltype(debuginfod_find_debuginfo)* find_debuginfo = nullptr;
  decltype(debuginfod_set_progressfn)* set_progressfn = nullptr;
  decltype(debuginfod_set_user_data)* set_user_data = nullptr;
  decltype(debuginfod_get_user_data)* get_user_data = nullptr;

  bool Load() {
    return library.Load("debuginfod_begin", begin) && library.Load("debuginfod_end", end) &&
           library.Load("debuginfod_find_debuginfo", find_debuginfo) &&
           library.Load("debuginfod_set_progressfn", set_progressfn) &&
           library.Load("debuginfod_set_user_data", set_user_data) &&
           library.Load("debuginfod_get_user_data", get_user_data);
  }
};

// For the progress callback, whose client carries it.
struct Watch {
  std::chrono::steady_clock::time_point deadline;
  uint64_t max_bytes;
  bool too_slow = false;
  bool too_large = false;
};

// The library hands its callback no data but the client, and reading that takes a function of the library.
decltype(debuginfod_get_user_data)* get_user_data_for_progress = nullptr;

// Called several times a second. `progress` counts calls before the transfer has begun, bytes then. 0: go on.
int OnProgress(debuginfod_client* client, long progress, long total) {
  auto* watch = static_cast<Watch*>(get_user_data_for_progress(client));
  watch->too_slow = std::chrono::steady_clock::now() > watch->deadline;
  watch->too_large = static_cast<uint64_t>(std::max({progress, total, 0L})) > watch->max_bytes;
  return watch->too_slow || watch->too_large ? 1 : 0;
}

// The library takes all its settings from the environment: possible because the process is for fetching only.
class DebuginfodFetcher : public SymbolFetcher {
 public:
  DebuginfodFetcher(const FetchLimits& limits, const std::string& work_folder, Debuginfod library)
      : limits_(limits), library_(std::move(library)) {
    setenv(DEBUGINFOD_CACHE_PATH_ENV_VAR, absl::StrCat(work_folder, "/debuginfod").c_str(), 1);
    setenv(DEBUGINFOD_TIMEOUT_ENV_VAR, absl::StrCat(limits.stall_seconds).c_str(), 1);
    setenv(DEBUGINFOD_MAXTIME_ENV_VAR, absl::StrCat(limits.transfer_seconds).c_str(), 1);
    setenv(DEBUGINFOD_MAXSIZE_ENV_VAR, absl::StrCat(limits.file_bytes).c_str(), 1);
    setenv(DEBUGINFOD_RETRY_LIMIT_ENV_VAR, "0", 1);
    unsetenv(DEBUGINFOD_PROGRESS_ENV_VAR);
    unsetenv(DEBUGINFOD_VERBOSE_ENV_VAR);
    unsetenv(DEBUGINFOD_HEADERS_FILE_ENV_VAR);  // may hold credentials that are meant for other servers
    get_user_data_for_progress = library_.get_user_data;
  }

  size_t Places(const SymbolServerUrl& server, const SymbolFileKey& key) const override {
    return server.debuginfod && key.kind == SymbolFileKind::kElfDebug ? 1 : 0;
  }

  FetchOutcome Fetch(const SymbolServerUrl& server, const SymbolFileKey& key, size_t,
                     const std::string& path) override {
    setenv(DEBUGINFOD_URLS_ENV_VAR, server.base.c_str(), 1);
    const std::unique_ptr<debuginfod_client, decltype(debuginfod_end)*> client(library_.begin(), library_.end);
    if (client == nullptr) return {FetchResult::kFailed, "libdebuginfod has no memory"};
    Watch watch{std::chrono::steady_clock::now() + std::chrono::seconds(limits_.transfer_seconds), limits_.file_bytes};
    library_.set_user_data(client.get(), &watch);
    library_.set_progressfn(client.get(), OnProgress);
    char* received = nullptr;
    const UniqueFd fd(
        library_.find_debuginfo(client.get(), reinterpret_cast<const unsigned char*>(key.id.c_str()), 0, &received));
    const int error = -fd.get();
    const std::unique_ptr<char, decltype(&std::free)> freed(received, std::free);
    if (watch.too_large) return {FetchResult::kFailed, "the file is larger than allowed"};
    if (watch.too_slow) return {FetchResult::kFailed, "it is too slow"};
    if (fd.valid() && received != nullptr) {
      if (std::rename(received, path.c_str()) == 0) return {FetchResult::kFound, ""};
      return {FetchResult::kFailed, std::string(ErrnoError(errno, path).message())};
    }
    if (error == ENOENT) return {FetchResult::kMissing, ""};
    const bool unreachable = error == ECONNREFUSED || error == EHOSTUNREACH || error == ENETUNREACH || error == ETIME;
    return {unreachable ? FetchResult::kUnreachable : FetchResult::kFailed, std::strerror(error)};
  }

 private:
  const FetchLimits limits_;
  const Debuginfod library_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SymbolFetcher>> MakeDebuginfodFetcher(const FetchLimits& limits,
                                                                     const std::string& work_folder) {
  Debuginfod library;
  if (!library.Load()) {
    return WithHint(absl::UnavailableError("libdebuginfod is not installed: debuginfod servers can't be asked"),
                    "install libdebuginfod1 (Debian) or elfutils-debuginfod-client (Fedora)");
  }
  return std::unique_ptr<SymbolFetcher>(std::make_unique<DebuginfodFetcher>(limits, work_folder, std::move(library)));
}

#else

absl::StatusOr<std::unique_ptr<SymbolFetcher>> MakeDebuginfodFetcher(const FetchLimits&, const std::string&) {
  return absl::UnavailableError("this program was built without libdebuginfod: debuginfod servers can't be asked");
}

#endif

}  // namespace clrsampler
