#include "worker/connection/module/module_host.h"

#include <glog/logging.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/base/stop_flag.h"
#include "common/net/unix_socket.h"
#include "common/security/role.h"
#include "common/security/secret.h"
#include "common/wire/caller.h"
#include "common/wire/deadline.h"
#include "common/wire/grpc_runtime.h"
#include "common/wire/messages.h"
#include "common/wire/status.h"
#include "sluice/v1/module_server.grpc.pb.h"
#include "worker/connection/grpc/channel.h"
#include "worker/connection/module/module_answer.h"
#include "worker/connection/module/module_messages.h"

namespace sluice {
namespace {

using Stream = grpc::ServerReaderWriter<v1::ModuleReply, v1::ModuleRequest>;

constexpr int kPeerTimeoutMs = 10000;  // until a silent peer is asked, and until it is given up
constexpr int kHandshakeMs = 10000;
constexpr int kCallsOfConnection = 16;                       // at once
constexpr int kThreadsOfGrpc = 16;                           // beside those of the trainers
constexpr uint32_t kMostThreads = 1 << 20;                   // of the trainers
constexpr absl::Duration kUntilEntered = absl::Seconds(20);  // from the call's begin to `enter`
constexpr absl::Duration kUntilRead = absl::Seconds(60);     // from an answer to its last byte
constexpr absl::Duration kWatchInterval = absl::Seconds(1);
constexpr int kMetadataBytes = 8 << 10;

// Under TLS a trainer needs a worker's certificate.
absl::Status CheckRole(const grpc::ServerContext& context) {
  if (RolesOf(context).Has(Role::kWorker)) return absl::OkStatus();
  return MakeError(Reason::kWrongRole,
                   absl::StrCat("the caller's certificate lacks the role ", RoleUri(Role::kWorker),
                                ", which a trainer needs"));
}

absl::Status CheckName(const std::string& trainer) {
  if (trainer.find('\0') != std::string::npos) {
    return MakeError(Reason::kBadArgument, "enter.trainer has a byte that is 0");
  }
  if (!trainer.empty() && trainer.size() <= kMaxWorkerName) return absl::OkStatus();
  return MakeError(Reason::kBadArgument, absl::StrCat("enter.trainer has ", trainer.size(),
                                                      " bytes, expected 1 to ", kMaxWorkerName));
}

}  // namespace

// The calls of trainers, and the trainers that have left or were lost.
class ModuleHost::Parts final : public v1::ModuleServer::Service {
 public:
  Parts(const ModuleHostOptions& options, ModuleSessionFactory factory)
      : options_(options), factory_(std::move(factory)), expected_(options.trainers) {}

  ~Parts() override {
    if (server_ != nullptr) server_->Shutdown(DeadlineAfter(absl::ZeroDuration()));
    stop_.Raise();
    if (watch_.joinable()) watch_.join();
  }

  absl::Status Listen() {
    KeepGrpcRunning();
    auto credentials = CredentialsOf(options_.credentials);
    if (!credentials.ok()) return credentials.status();
    // gRPC takes a unix socket away from another process that listens there.
    if (options_.address.is_unix() && ConnectUnix(options_.address.unix_path).ok()) {
      return CannotListen("another process listens there");
    }
    grpc::ServerBuilder builder;
    SetLimits(builder);
    int port = 0;
    builder.AddListeningPort(options_.address.ToString(), *credentials, &port);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) return CannotListen("it is in use, or not this machine's");
    if (!options_.address.is_unix()) options_.address.port = static_cast<uint16_t>(port);
    watch_ = std::thread([this] { Watch(); });
    LOG(INFO) << "model server listens on " << options_.address.ToString();
    return absl::OkStatus();
  }

  const Address& address() const { return options_.address; }

  bool AwaitEndFor(absl::Duration longest) {
    const absl::MutexLock lock(&mu_);
    return mu_.AwaitWithTimeout(absl::Condition(&ended_), longest);
  }

  grpc::Status Train(grpc::ServerContext* context, Stream* stream) override {
    absl::Status status = CheckToken(*context, options_.token);
    status.Update(CheckRole(*context));
    if (status.ok()) status = Converse(*context, *stream);
    return ToGrpcStatus(status);
  }

 private:
  // A trainer that has entered, now or earlier.
  struct Trainer {
    grpc::ServerContext* context = nullptr;  // of its call; null if it has none
    bool left = false;                       // in good order
    absl::Time gone;                         // when its last call ended
  };

  absl::Status CannotListen(absl::string_view why) const {
    return absl::UnavailableError(
        absl::StrCat("the model server cannot listen on ", options_.address.ToString(), ": ", why));
  }

  static absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> CredentialsOf(
      const CredentialsSource& source) {
    if (source == nullptr) return grpc::InsecureServerCredentials();
    auto credentials = source();
    if (!credentials.ok()) return credentials.status();
    grpc::SslServerCredentialsOptions options(
        GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    options.pem_root_certs = credentials->authority;
    options.pem_key_cert_pairs.push_back({credentials->key, credentials->certificate});
    auto made = grpc::SslServerCredentials(options);
    Wipe(options.pem_key_cert_pairs[0].private_key);
    return made;
  }

  void SetLimits(grpc::ServerBuilder& builder) const {
    grpc::ResourceQuota quota("model server");
    const uint32_t trainers = std::min(options_.max_trainers, kMostThreads);
    quota.SetMaxThreads(static_cast<int>(trainers) + kThreadsOfGrpc);
    builder.SetResourceQuota(quota);
    builder.SetMaxReceiveMessageSize(kMaxTensorMessage);
    builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMetadataBytes);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kCallsOfConnection);
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    // gRPC unpacks a message before it looks at the message's size.
    builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
    builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
    // A trainer that is stopped, or whose node is gone, answers no ping. Then its call ends.
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kPeerTimeoutMs);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPeerTimeoutMs);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5000);
  }

  // Calls `body`, and cancels the call if that takes longer than `limit`.
  template <typename Body>
  auto Within(absl::Duration limit, grpc::ServerContext& context, Body body) {
    {
      const absl::MutexLock lock(&mu_);
      deadlines_[&context] = RealClock().Now() + limit;
    }
    const auto done = absl::MakeCleanup([this, &context] {
      const absl::MutexLock lock(&mu_);
      deadlines_.erase(&context);
    });
    return body();
  }

  // Talks with one trainer until its call ends.
  absl::Status Converse(grpc::ServerContext& context, Stream& stream) {
    v1::ModuleRequest request;
    if (!Within(kUntilEntered, context, [&] { return stream.Read(&request); })) {
      return absl::OkStatus();
    }
    if (!request.has_enter()) {
      return MakeError(Reason::kBadArgument, "the first request of Train is not `enter`");
    }
    const std::string trainer = request.enter().trainer();
    absl::Status entered = CheckName(trainer);
    if (entered.ok()) entered = Enter(trainer, context);
    if (!entered.ok()) return entered;
    bool left = false;
    const auto exit = absl::MakeCleanup([&] { Exit(trainer, left); });
    auto session = factory_(trainer);  // ends before `exit`
    if (!session.ok()) return session.status();
    Expect((*session)->place().workers);
    LOG(INFO) << "trainer " << Shown(trainer) << " has entered";
    return Serve(context, stream, **session, left);
  }

  absl::Status Serve(grpc::ServerContext& context, Stream& stream, ModuleSession& session,
                     bool& left) {
    const auto write = [&](const v1::ModuleReply& reply) {
      return Within(kUntilRead, context, [&] { return stream.Write(reply); });
    };
    v1::ModuleReply entered;
    *entered.mutable_entered() = ToProto(session.place());
    bool open = write(entered);
    ModuleAnswers answers(session);
    v1::ModuleRequest request;
    while (open && stream.Read(&request)) {
      const bool leaves = request.has_leave();
      auto reply = answers.Answer(std::move(request));
      if (!reply.ok()) return reply.status();
      left |= leaves && reply->has_done();
      open = write(*reply);
    }
    return absl::OkStatus();
  }

  // Ends the call of a trainer of the same name, which this one replaces.
  absl::Status Enter(const std::string& name, grpc::ServerContext& context) {
    const absl::MutexLock lock(&mu_);
    for (;;) {
      const auto found = trainers_.find(name);
      if (found == trainers_.end() || found->second.context == nullptr) break;
      found->second.context->TryCancel();
      changed_.Wait(&mu_);
    }
    if (present_ >= options_.max_trainers) {
      return MakeError(Reason::kTooManyWorkers, absl::StrCat("this model server has ", present_,
                                                             " trainers, as many as it may have"));
    }
    ++present_;
    trainers_[name] = {&context, false, absl::InfiniteFuture()};
    return absl::OkStatus();
  }

  void Exit(const std::string& name, bool left) {
    const absl::MutexLock lock(&mu_);
    LOG(INFO) << "trainer " << Shown(name) << (left ? " has left" : " is gone without leaving");
    --present_;
    trainers_[name] = {nullptr, left, RealClock().Now()};
    changed_.SignalAll();
    EndIfDone();
  }

  void Expect(uint32_t workers) {
    const absl::MutexLock lock(&mu_);
    if (options_.trainers == 0) expected_ = std::max(expected_, workers);
  }

  // Ends what takes too long: calls that have not entered, answers that nobody reads, and the
  // waiting for trainers that were lost.
  void Watch() {
    while (!stop_.WaitFor(kWatchInterval)) {
      const absl::MutexLock lock(&mu_);
      const absl::Time now = RealClock().Now();
      for (const auto& [context, deadline] : deadlines_) {
        if (deadline < now) context->TryCancel();
      }
      EndIfDone();
    }
  }

  void EndIfDone() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (present_ > 0 || expected_ == 0 || ended_) return;
    const absl::Time now = RealClock().Now();
    const auto over = [&](const auto& known) {
      return known.second.left || now - known.second.gone >= options_.patience;
    };
    const auto done = std::count_if(trainers_.begin(), trainers_.end(), over);
    ended_ = done >= static_cast<int64_t>(expected_);
  }

  ModuleHostOptions options_;
  const ModuleSessionFactory factory_;
  absl::Mutex mu_;
  absl::CondVar changed_;                      // a trainer's call has ended
  uint32_t present_ ABSL_GUARDED_BY(mu_) = 0;  // trainers that have a call
  uint32_t expected_ ABSL_GUARDED_BY(mu_);     // that must have come before this server may end
  std::map<std::string, Trainer> trainers_ ABSL_GUARDED_BY(mu_);  // by name
  // Calls in which this server waits for the trainer, and until when it does.
  std::map<grpc::ServerContext*, absl::Time> deadlines_ ABSL_GUARDED_BY(mu_);
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  StopFlag stop_;
  std::thread watch_;
  std::unique_ptr<grpc::Server> server_;
};

ModuleHost::ModuleHost(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
ModuleHost::~ModuleHost() = default;

absl::StatusOr<std::unique_ptr<ModuleHost>> ModuleHost::Start(const ModuleHostOptions& options,
                                                              ModuleSessionFactory factory) {
  auto parts = std::make_unique<Parts>(options, std::move(factory));
  const absl::Status listening = parts->Listen();
  if (!listening.ok()) return listening;
  return std::unique_ptr<ModuleHost>(new ModuleHost(std::move(parts)));
}

const Address& ModuleHost::address() const { return parts_->address(); }

void ModuleHost::AwaitEnd() { AwaitEndFor(absl::InfiniteDuration()); }

bool ModuleHost::AwaitEndFor(absl::Duration longest) { return parts_->AwaitEndFor(longest); }

}  // namespace sluice
