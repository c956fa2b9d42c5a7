#include "export/http_server.h"

#include <microhttpd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "export/client_name.h"
#include "export/connection_table.h"
#include "export/cpu_bucket.h"
#include "export/http_head.h"
#include "export/signals_blocked.h"
#include "os/clock.h"
#include "os/loaded_library.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr unsigned kThreads = 2;
// Head of the request and of the answer of one connection.
constexpr size_t kConnectionBytes = 16 * 1024;
constexpr size_t kSmallAnswer = 64 * 1024;  // always sent
constexpr auto kWatchEvery = std::chrono::milliseconds(250);
constexpr auto kFarewell = std::chrono::seconds(1);
constexpr auto kLongestPause = std::chrono::seconds(1);
// TLS 1.2 with forward secrecy, and newer.
constexpr const char* kTlsPriorities = "SECURE128:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-RSA";

// Only functions that have been there since 0.9.73 (2021) are used.
struct Microhttpd {
  LoadedLibrary library{"libmicrohttpd.so.12"};
  decltype(MHD_start_daemon)* start_daemon = nullptr;
  decltype(MHD_stop_daemon)* stop_daemon = nullptr;
  decltype(MHD_suspend_connection)* suspend_connection = nullptr;
  decltype(MHD_resume_connection)* resume_connection = nullptr;
  decltype(MHD_get_connection_values)* get_connection_values = nullptr;
  decltype(MHD_get_connection_info)* get_connection_info = nullptr;
  decltype(MHD_create_response_from_buffer_with_free_callback_cls)* create_response = nullptr;
  decltype(MHD_add_response_header)* add_response_header = nullptr;
  decltype(MHD_queue_response)* queue_response = nullptr;
  decltype(MHD_destroy_response)* destroy_response = nullptr;
  decltype(MHD_is_feature_supported)* is_feature_supported = nullptr;

  bool Load() {
    return library.Load("MHD_start_daemon", start_daemon) && library.Load("MHD_stop_daemon", stop_daemon) &&
           library.Load("MHD_suspend_connection", suspend_connection) &&
           library.Load("MHD_resume_connection", resume_connection) &&
           library.Load("MHD_get_connection_values", get_connection_values) &&
           library.Load("MHD_get_connection_info", get_connection_info) &&
           library.Load("MHD_create_response_from_buffer_with_free_callback_cls", create_response) &&
           library.Load("MHD_add_response_header", add_response_header) &&
           library.Load("MHD_queue_response", queue_response) &&
           library.Load("MHD_destroy_response", destroy_response) &&
           library.Load("MHD_is_feature_supported", is_feature_supported);
  }
};

// A request and its answer. Between OnTarget and OnCompleted libmicrohttpd holds it; a reply may hold it longer.
struct Exchange {
  std::mutex mutex;  // the server's threads, and the one that replies
  MHD_Connection* connection = nullptr;
  enum class Step : uint8_t { kHead, kRequest, kAsked } step = Step::kHead;
  bool suspended = false;
  bool over = false;
  std::optional<HttpAnswer> answer;
  std::string endpoint = "none";
  unsigned status = 0;
  bool queued = false;
  HttpRequest request;
  ConnectionTable::Id id = 0;
  uint64_t begun_ns = 0;
};

class MicrohttpdServer : public HttpServer {
 public:
  MicrohttpdServer(const HttpServerOptions& options, Microhttpd library, HttpHandler handler,
                   HttpServerObserver observer)
      : options_(options),
        mhd_(std::move(library)),
        handler_(std::move(handler)),
        observer_(std::move(observer)),
        table_({options.connections, options.connections_per_address, uint64_t{options.request_seconds} * 1'000'000'000,
                uint64_t{options.answer_seconds} * 1'000'000'000}),
        cpu_(options.cpu, NowNs(CLOCK_MONOTONIC)) {}

  absl::Status Open() {
    ASSIGN_OR_RETURN(UniqueFd opened, OpenListenSocket(options_.listen));
    if (options_.tls && mhd_.is_feature_supported(MHD_FEATURE_TLS) != MHD_YES) {
      return WithHint(absl::UnavailableError("this libmicrohttpd has no TLS"),
                      "install the distribution's, or put a proxy with TLS in front of a Unix socket");
    }
    const SignalsBlocked blocked;
    const int fd = opened.get();
    MHD_OptionItem tls[] = {{MHD_OPTION_END, 0, nullptr}, {}, {}, {}};
    if (options_.tls) {
      tls[0] = {MHD_OPTION_HTTPS_MEM_CERT, 0, options_.tls->certificates.data()};
      tls[1] = {MHD_OPTION_HTTPS_MEM_KEY, 0, options_.tls->key.data()};
      tls[2] = {MHD_OPTION_HTTPS_PRIORITIES, 0, const_cast<char*>(kTlsPriorities)};
      tls[3] = {MHD_OPTION_END, 0, nullptr};
    }
    // The table's limit is below the library's limit, at which it would accept nobody at all. The table's own timeout
    // ends clients that have stopped taking their answer.
    daemon_ = mhd_.start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | (options_.tls ? MHD_USE_TLS : 0), 0, &OnAccept, this,
        &OnRequest, this, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_THREAD_POOL_SIZE, kThreads,
        MHD_OPTION_CONNECTION_LIMIT, options_.connections * 2, MHD_OPTION_CONNECTION_TIMEOUT, options_.request_seconds,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, kConnectionBytes, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_NOTIFY_CONNECTION, &OnConnection, this, MHD_OPTION_NOTIFY_COMPLETED, &OnCompleted, this,
        MHD_OPTION_URI_LOG_CALLBACK, &OnTarget, this, MHD_OPTION_UNESCAPE_CALLBACK, &LeaveAsItIs, nullptr,
        MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
    if (daemon_ == nullptr && options_.tls) {
      return WithHint(absl::InvalidArgumentError("the certificate and the key of --tls-cert and --tls-key do not work"),
                      "both are PEM, the key is that of the first certificate, and has no password");
    }
    if (daemon_ == nullptr) {
      return WithHint(absl::UnavailableError("the HTTP server could not be started"),
                      "look for a limit on threads or descriptors: ulimit -a");
    }
    (void)opened.release();  // the library closes it
    watch_ = std::thread([this] { Watch(); });
    return absl::OkStatus();
  }

  ~MicrohttpdServer() override {
    if (daemon_ == nullptr) return;
    std::vector<std::shared_ptr<Exchange>> waiting;
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      waiting.assign(exchanges_.begin(), exchanges_.end());
    }
    wake_.notify_all();
    watch_.join();
    // The library insists that nothing is suspended when it ends.
    for (const std::shared_ptr<Exchange>& exchange : waiting) Deliver(*exchange, Ending());
    {
      // Time for the answers to leave.
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock, kFarewell, [&] { return exchanges_.empty(); });
    }
    mhd_.stop_daemon(daemon_);
    if (options_.listen.is_unix()) unlink(options_.listen.path.c_str());
  }

  const ListenAddress& address() const override { return options_.listen; }
  size_t connections() const override {
    const std::lock_guard lock(mutex_);
    return table_.size();
  }

 private:
  static HttpAnswer Ending() { return ErrorAnswer(503, "clrsampler is ending", "ask again when it runs"); }

  static size_t LeaveAsItIs(void*, MHD_Connection*, char* text) { return std::strlen(text); }

  static MHD_Result OnAccept(void* self, const sockaddr*, socklen_t) {
    static_cast<MicrohttpdServer*>(self)->Pace();
    return MHD_YES;
  }

  // The serving threads call this before each step of their work. It pays for the steps before it.
  void Pace() {
    static thread_local uint64_t paid_ns = 0;  // a thread serves one server only
    const uint64_t spent_ns = NowNs(CLOCK_THREAD_CPUTIME_ID);
    std::unique_lock lock(mutex_);
    cpu_.Spend(spent_ns - std::exchange(paid_ns, spent_ns), NowNs(CLOCK_MONOTONIC));
    const std::chrono::nanoseconds wait(cpu_.WaitNs(NowNs(CLOCK_MONOTONIC)));
    if (wait.count() == 0) return;
    wake_.wait_for(lock, std::min<std::chrono::nanoseconds>(wait, kLongestPause), [&] { return stopping_; });
  }

  static void OnConnection(void* self, MHD_Connection* connection, void** context,
                           MHD_ConnectionNotificationCode code) {
    static_cast<MicrohttpdServer*>(self)->Connection(connection, context, code);
  }

  void Connection(MHD_Connection* connection, void** context, MHD_ConnectionNotificationCode code) {
    bool silent = false;
    std::vector<ConnectionTable::Verdict> verdicts;
    {
      const std::lock_guard lock(mutex_);
      if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const ClientName client = ClientOf(connection);
        const ConnectionTable::Id id = table_.Open(client.counted ? client.name : "", NowNs(CLOCK_MONOTONIC));
        clients_[id] = client.name;
        *context = new ConnectionTable::Id(id);
        sockets_[id] = mhd_.get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
        if (!options_.listen.is_loopback() || table_.size() > options_.connections) verdicts = End();
      } else {
        const std::unique_ptr<ConnectionTable::Id> id(static_cast<ConnectionTable::Id*>(*context));
        // The library closes the socket after this call. So End never meets a descriptor of something else.
        sockets_.erase(*id);
        clients_.erase(*id);
        silent = table_.Close(*id);
      }
    }
    Answer(verdicts);
    if (silent) observer_.connection_ended("no_request");
  }

  ClientName ClientOf(MHD_Connection* connection) const {
    if (options_.listen.is_unix()) {
      return LocalClient(mhd_.get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd);
    }
    const MHD_ConnectionInfo* info = mhd_.get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    return NetworkClient(info == nullptr ? nullptr : info->client_addr);
  }

  // Under the mutex. Shutting down wakes the thread that serves the connection.
  std::vector<ConnectionTable::Verdict> End() {
    std::vector<ConnectionTable::Verdict> verdicts = table_.Judge(NowNs(CLOCK_MONOTONIC));
    for (const ConnectionTable::Verdict& verdict : verdicts) {
      const auto socket = sockets_.find(verdict.id);
      if (socket != sockets_.end()) shutdown(socket->second, SHUT_RDWR);
    }
    return verdicts;
  }

  void Answer(const std::vector<ConnectionTable::Verdict>& verdicts) const {
    for (const ConnectionTable::Verdict& verdict : verdicts) observer_.connection_ended(verdict.end);
  }

  void Watch() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      wake_.wait_for(lock, kWatchEvery);
      const std::vector<ConnectionTable::Verdict> verdicts = End();
      lock.unlock();
      Answer(verdicts);
      lock.lock();
    }
  }

  // The first call for a request, with its first line.
  static void* OnTarget(void* self, const char* target, MHD_Connection* connection) {
    static_cast<MicrohttpdServer*>(self)->Pace();
    auto exchange = std::make_shared<Exchange>();
    exchange->connection = connection;
    exchange->request.target = target;
    exchange->begun_ns = NowNs(CLOCK_MONOTONIC);
    return new std::shared_ptr<Exchange>(std::move(exchange));
  }

  static MHD_Result OnRequest(void* self, MHD_Connection* connection, const char*, const char* method, const char*,
                              const char*, size_t* upload_size, void** context) {
    // This is part of a body that nobody wants: the answer is queued already.
    if (*upload_size > 0) {
      *upload_size = 0;
      return MHD_YES;
    }
    auto* server = static_cast<MicrohttpdServer*>(self);
    const std::shared_ptr<Exchange> exchange = *static_cast<std::shared_ptr<Exchange>*>(*context);
    if (exchange->step == Exchange::Step::kHead) {
      exchange->step = Exchange::Step::kRequest;
      exchange->request.method = method;
      // An answer at this moment ends the connection. That is right where there is a body. The others are called again.
      if (!server->TakeHead(connection, exchange)) return MHD_YES;
    } else if (exchange->step == Exchange::Step::kRequest) {
      exchange->step = Exchange::Step::kAsked;
      server->Ask(exchange);
    }
    const std::lock_guard lock(exchange->mutex);
    if (exchange->answer) return server->Queue(*exchange);
    exchange->suspended = true;
    server->mhd_.suspend_connection(connection);
    return MHD_YES;
  }

  // Says whether it is answered already.
  bool TakeHead(MHD_Connection* connection, const std::shared_ptr<Exchange>& exchange) {
    HttpRequest& request = exchange->request;
    request.local_socket = options_.listen.is_unix();
    request.tls = options_.tls.has_value();
    request.port = options_.listen.port;
    std::vector<HttpField> fields;
    mhd_.get_connection_values(
        connection, MHD_HEADER_KIND,
        [](void* into, MHD_ValueKind, const char* name, const char* value) {
          static_cast<std::vector<HttpField>*>(into)->push_back({name, value == nullptr ? "" : value});
          return MHD_YES;
        },
        &fields);
    const MHD_ConnectionInfo* info = mhd_.get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    exchange->id = *static_cast<ConnectionTable::Id*>(info->socket_context);
    bool stopping = false;
    {
      const std::lock_guard lock(mutex_);
      table_.RequestComplete(exchange->id, NowNs(CLOCK_MONOTONIC));
      exchanges_.insert(exchange);
      request.client = clients_[exchange->id];
      stopping = stopping_;
    }
    std::optional<HttpAnswer> refusal = ReadHead(fields, request);
    if (stopping) refusal = Ending();
    if (!refusal) return false;
    Deliver(*exchange, *std::move(refusal));
    return true;
  }

  void Ask(const std::shared_ptr<Exchange>& exchange) {
    handler_(exchange->request, [this, exchange](HttpAnswer answer) { Deliver(*exchange, std::move(answer)); });
  }

  // This runs on any thread. The exchange ends before the server does. After its end, only the exchange itself is
  // touched.
  void Deliver(Exchange& exchange, HttpAnswer answer) {
    const std::lock_guard lock(exchange.mutex);
    if (exchange.over || exchange.answer) return;
    exchange.answer = std::move(answer);
    if (!std::exchange(exchange.suspended, false)) return;
    mhd_.resume_connection(exchange.connection);
  }

  // The bytes of answers that clients have not taken yet.
  struct UnsentBytes {
    std::mutex mutex;
    size_t all = 0;
    std::map<std::string, size_t> by_client;
  };

  // An answer that a client has not taken yet. It counts as long as this lives.
  struct Unsent {
    Unsent(UnsentBytes& of_all, std::string whose, std::shared_ptr<const std::string> body)
        : sums(of_all), client(std::move(whose)), bytes(std::move(body)) {
      const std::lock_guard lock(sums.mutex);
      sums.all += bytes->size();
      sums.by_client[client] += bytes->size();
    }
    ~Unsent() {
      const std::lock_guard lock(sums.mutex);
      sums.all -= bytes->size();
      size_t& of_client = sums.by_client[client];
      of_client -= bytes->size();
      if (of_client == 0) sums.by_client.erase(client);
    }
    UnsentBytes& sums;
    const std::string client;
    const std::shared_ptr<const std::string> bytes;
  };

  // One large answer may always leave. The next ones leave only while there is room.
  bool HasRoom(const std::string& client, size_t bytes) {
    if (bytes <= kSmallAnswer) return true;
    const std::lock_guard lock(unsent_.mutex);
    const auto found = unsent_.by_client.find(client);
    const size_t own = found == unsent_.by_client.end() ? 0 : found->second;
    return (unsent_.all == 0 || unsent_.all + bytes <= options_.unsent_bytes) &&
           (own == 0 || own + bytes <= options_.unsent_bytes / 2);
  }

  MHD_Result Queue(Exchange& exchange) {
    HttpAnswer answer = *std::exchange(exchange.answer, HttpAnswer());
    if (!HasRoom(exchange.request.client, answer.body->size())) {
      HttpAnswer busy = ErrorAnswer(503, "too many large answers are on their way to slow clients", "ask again later");
      busy.endpoint = answer.endpoint;
      answer = std::move(busy);
    }
    auto body = std::make_unique<Unsent>(unsent_, exchange.request.client, answer.body);
    MHD_Response* response = mhd_.create_response(
        body->bytes->size(), const_cast<char*>(body->bytes->data()),
        [](void* sent) { delete static_cast<Unsent*>(sent); }, body.get());
    if (response == nullptr) return MHD_NO;
    (void)body.release();
    const auto add = [&](absl::string_view name, absl::string_view value) {
      mhd_.add_response_header(response, std::string(name).c_str(), std::string(value).c_str());
    };
    const auto unless_given = [&](absl::string_view name, absl::string_view value) {
      const bool given = std::any_of(answer.headers.begin(), answer.headers.end(),
                                     [&](const auto& header) { return absl::EqualsIgnoreCase(header.first, name); });
      if (!given) add(name, value);
    };
    for (const auto& [name, value] : answer.headers) add(name, value);
    if (!answer.content_type.empty()) add("Content-Type", answer.content_type);
    unless_given("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'");
    unless_given("Cache-Control", "no-store");
    add("X-Content-Type-Options", "nosniff");
    add("Cross-Origin-Resource-Policy", "same-origin");
    add("Cross-Origin-Opener-Policy", "same-origin");
    add("Referrer-Policy", "no-referrer");
    {
      const std::lock_guard lock(mutex_);
      table_.AnswerBegun(exchange.id, NowNs(CLOCK_MONOTONIC));
    }
    exchange.endpoint = answer.endpoint;
    exchange.status = answer.status;
    exchange.queued = true;
    const MHD_Result result = mhd_.queue_response(exchange.connection, answer.status, response);
    mhd_.destroy_response(response);
    return result;
  }

  static void OnCompleted(void* self, MHD_Connection*, void** context, MHD_RequestTerminationCode) {
    const std::unique_ptr<std::shared_ptr<Exchange>> held(static_cast<std::shared_ptr<Exchange>*>(*context));
    *context = nullptr;
    if (held != nullptr) static_cast<MicrohttpdServer*>(self)->Completed(*held);
  }

  void Completed(const std::shared_ptr<Exchange>& exchange) {
    bool queued = false;
    {
      const std::lock_guard lock(exchange->mutex);
      exchange->over = true;
      queued = exchange->queued;
    }
    {
      const std::lock_guard lock(mutex_);
      exchanges_.erase(exchange);
      if (stopping_) wake_.notify_all();
      if (queued) table_.AnswerTaken(exchange->id, NowNs(CLOCK_MONOTONIC));
    }
    if (!queued) return;
    observer_.answered(exchange->endpoint, exchange->status,
                       static_cast<double>(NowNs(CLOCK_MONOTONIC) - exchange->begun_ns) / 1e9);
  }

  HttpServerOptions options_;
  const Microhttpd mhd_;
  const HttpHandler handler_;
  const HttpServerObserver observer_;
  MHD_Daemon* daemon_ = nullptr;
  UnsentBytes unsent_;

  // The serving threads, the watching thread and the destructor's thread meet here.
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  ConnectionTable table_;
  std::map<ConnectionTable::Id, int> sockets_;
  std::map<ConnectionTable::Id, std::string> clients_;
  CpuBucket cpu_;
  std::set<std::shared_ptr<Exchange>> exchanges_;
  std::thread watch_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const HttpServerOptions& options, HttpHandler handler,
                                                              HttpServerObserver observer) {
  Microhttpd library;
  if (!library.Load()) {
    return WithHint(absl::UnavailableError("libmicrohttpd is not installed, or older than 0.9.73: no HTTP server"),
                    "install libmicrohttpd12 (Debian) or libmicrohttpd (Fedora)");
  }
  auto server =
      std::make_unique<MicrohttpdServer>(options, std::move(library), std::move(handler), std::move(observer));
  RETURN_IF_ERROR(server->Open());
  return std::unique_ptr<HttpServer>(std::move(server));
}

}  // namespace clrsampler
