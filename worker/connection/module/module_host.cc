#include "worker/connection/module/module_host.h"

#include <glog/logging.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/error.h"
#include "common/security/role.h"
#include "common/security/secret.h"
#include "common/wire/deadline.h"
#include "common/wire/messages.h"
#include "common/wire/push.h"
#include "common/wire/status.h"
#include "sluice/v1/module_server.grpc.pb.h"
#include "worker/connection/module/module_messages.h"

namespace sluice {
namespace {

using Stream = grpc::ServerReaderWriter<v1::ModuleReply, v1::ModuleRequest>;

constexpr int kPeerTimeoutMs = 10000;   // until a silent peer is asked, and until it is given up
constexpr int kCallsOfConnection = 16;  // at once
constexpr int kThreadsOfGrpc = 16;      // beside those of the trainers
constexpr int kMetadataBytes = 8 << 10;

// The token, as in parameter_server.proto.
absl::Status CheckToken(const grpc::ServerContext& context, const std::string& token) {
  if (token.empty()) return absl::OkStatus();
  const auto found = context.client_metadata().find("authorization");
  absl::string_view value;
  if (found != context.client_metadata().end()) {
    value = absl::string_view(found->second.data(), found->second.size());
  }
  if (absl::ConsumePrefix(&value, "Bearer ") && SameSecret(value, token)) return absl::OkStatus();
  return MakeError(Reason::kBadToken,
                   "the call has no token, or another than this model server's; start trainers and "
                   "model servers with the same --token-file");
}

// Under TLS a trainer needs a worker's certificate.
absl::Status CheckRole(const grpc::ServerContext& context) {
  const auto peer = context.auth_context();
  if (!peer->IsPeerAuthenticated()) return absl::OkStatus();  // plaintext
  for (const grpc::string_ref& uri : peer->FindPropertyValues(GRPC_PEER_URI_PROPERTY_NAME)) {
    if (RoleFromUri(absl::string_view(uri.data(), uri.size())) == Role::kWorker) {
      return absl::OkStatus();
    }
  }
  return MakeError(Reason::kWrongRole,
                   absl::StrCat("the caller's certificate lacks the role ", RoleUri(Role::kWorker),
                                ", which a trainer needs"));
}

absl::Status CheckName(const std::string& trainer) {
  if (!trainer.empty() && trainer.size() <= kMaxWorkerName) return absl::OkStatus();
  return MakeError(Reason::kBadArgument, absl::StrCat("enter.trainer has ", trainer.size(),
                                                      " bytes, expected 1 to ", kMaxWorkerName));
}

v1::ModuleReply FailureOf(const absl::Status& status) {
  v1::ModuleReply reply;
  *reply.mutable_failure() = ToProto(status);
  return reply;
}

v1::ModuleReply DoneOr(const absl::Status& status) {
  if (!status.ok()) return FailureOf(status);
  v1::ModuleReply reply;
  reply.mutable_done();
  return reply;
}

v1::ModuleReply Forward(v1::ForwardModule&& message, ModuleSession& session) {
  auto call = FromProto(std::move(message));
  if (!call.ok()) return FailureOf(call.status());
  auto output = session.Forward(*std::move(call));
  if (!output.ok()) return FailureOf(output.status());
  std::vector<PlainTensor> tensors;
  tensors.push_back(*std::move(output));
  const absl::Status fits = CheckFits(tensors);
  if (!fits.ok()) return FailureOf(fits);
  v1::ModuleReply reply;
  *reply.mutable_output() = ToProto(std::move(tensors[0]));
  return reply;
}

v1::ModuleReply Backward(v1::BackwardModule&& message, ModuleSession& session) {
  auto gradient = FromProto(std::move(*message.mutable_gradient()));
  if (!gradient.ok()) return FailureOf(gradient.status());
  auto gradients = session.Backward(message.call(), *std::move(gradient));
  if (!gradients.ok()) return FailureOf(gradients.status());
  v1::ModuleReply reply;
  *reply.mutable_gradients() = ToProto(*std::move(gradients));
  return reply;
}

v1::ModuleReply Step(const v1::StepModule& message, ModuleSession& session) {
  absl::optional<float> loss;
  if (message.has_loss()) loss = message.loss();
  const auto report = session.Step(message.samples(), loss);
  if (!report.ok()) return FailureOf(report.status());
  PushOutcome outcome;
  outcome.disposition = report->disposition;
  outcome.step = report->step;
  outcome.staleness = report->staleness;
  v1::ModuleReply reply;
  *reply.mutable_stepped() = ToProto(outcome);
  return reply;
}

absl::StatusOr<v1::ModuleReply> Answer(v1::ModuleRequest&& request, ModuleSession& session) {
  switch (request.request_case()) {
    case v1::ModuleRequest::kForward:
      return Forward(std::move(*request.mutable_forward()), session);
    case v1::ModuleRequest::kBackward:
      return Backward(std::move(*request.mutable_backward()), session);
    case v1::ModuleRequest::kDropGradient:
      return DoneOr(session.DropGradient());
    case v1::ModuleRequest::kStep:
      return Step(request.step(), session);
    case v1::ModuleRequest::kLeave:
      return DoneOr(session.Leave(request.leave().stay()));
    default:
      return MakeError(Reason::kBadArgument,
                       "a request of Train is empty or a second `enter`; expected one of the "
                       "others in module_server.proto");
  }
}

}  // namespace

// The trainers that are there, and those that were.
class ModuleHost::Parts final : public v1::ModuleServer::Service {
 public:
  Parts(const ModuleHostOptions& options, ModuleSessionFactory factory)
      : address_(options.address),
        token_(options.token),
        max_trainers_(options.max_trainers),
        factory_(std::move(factory)) {}

  ~Parts() override {
    if (server_ != nullptr) server_->Shutdown(DeadlineAfter(absl::ZeroDuration()));
  }

  absl::Status Listen(const CredentialsSource& source) {
    auto credentials = CredentialsOf(source);
    if (!credentials.ok()) return credentials.status();
    grpc::ResourceQuota quota("model server");
    quota.SetMaxThreads(static_cast<int>(max_trainers_) + kThreadsOfGrpc);
    grpc::ServerBuilder builder;
    builder.SetResourceQuota(quota);
    builder.SetMaxReceiveMessageSize(kMaxModuleMessage);
    builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMetadataBytes);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kCallsOfConnection);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    // gRPC unpacks a message before it looks at the message's size.
    builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
    builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
    // A trainer that is stopped, or whose node is gone, answers no ping. Then its call ends, and
    // the job no longer waits for it.
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kPeerTimeoutMs);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPeerTimeoutMs);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5000);
    int port = 0;
    builder.AddListeningPort(address_.ToString(), *credentials, &port);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) {
      return absl::UnavailableError(
          absl::StrCat("the model server cannot listen on ", address_.ToString(),
                       "; is the address in use, or not this machine's?"));
    }
    if (!address_.is_unix()) address_.port = static_cast<uint16_t>(port);
    LOG(INFO) << "model server listens on " << address_.ToString();
    return absl::OkStatus();
  }

  const Address& address() const { return address_; }

  void AwaitEnd() {
    const absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(
        +[](Parts* self) ABSL_EXCLUSIVE_LOCKS_REQUIRED(self->mu_) {
          return self->expected_ > 0 && self->known_.size() >= self->expected_ &&
                 self->entered_ == 0;
        },
        this));
  }

  grpc::Status Train(grpc::ServerContext* context, Stream* stream) override {
    absl::Status status = CheckToken(*context, token_);
    status.Update(CheckRole(*context));
    if (status.ok()) status = Begin();
    if (!status.ok()) return ToGrpcStatus(status);
    status = Converse(*stream);
    End();
    return ToGrpcStatus(status);
  }

 private:
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

  absl::Status Begin() {
    const absl::MutexLock lock(&mu_);
    if (calls_ >= max_trainers_) {
      return MakeError(Reason::kTooManyWorkers, absl::StrCat("this model server has ", calls_,
                                                             " trainers, as many as it may have"));
    }
    ++calls_;
    return absl::OkStatus();
  }

  void End() {
    const absl::MutexLock lock(&mu_);
    --calls_;
  }

  void NoteEntered(const std::string& trainer, uint32_t expected) {
    const absl::MutexLock lock(&mu_);
    ++entered_;
    expected_ = std::max<size_t>(expected_, expected);
    if (known_.size() < expected_) known_.insert(trainer);  // more names would end nothing
  }

  void NoteGone() {
    const absl::MutexLock lock(&mu_);
    --entered_;
  }

  // Talks with one trainer until its call ends.
  absl::Status Converse(Stream& stream) {
    v1::ModuleRequest request;
    if (!stream.Read(&request)) return absl::OkStatus();
    if (!request.has_enter()) {
      return MakeError(Reason::kBadArgument, "the first request of Train is not `enter`");
    }
    const std::string trainer = request.enter().trainer();
    const absl::Status named = CheckName(trainer);
    if (!named.ok()) return named;
    auto session = factory_(trainer);
    if (!session.ok()) {
      stream.Write(FailureOf(session.status()));
      return absl::OkStatus();
    }
    NoteEntered(trainer, (*session)->place().workers);
    LOG(INFO) << "trainer " << Shown(trainer) << " has entered";
    const absl::Status end = Serve(**session, stream);
    session->reset();  // leaves the job
    LOG(INFO) << "trainer " << Shown(trainer) << " is gone";
    NoteGone();
    return end;
  }

  static absl::Status Serve(ModuleSession& session, Stream& stream) {
    v1::ModuleReply entered;
    *entered.mutable_entered() = ToProto(session.place());
    bool open = stream.Write(entered);
    v1::ModuleRequest request;
    while (open && stream.Read(&request)) {
      auto reply = Answer(std::move(request), session);
      if (!reply.ok()) return reply.status();
      open = stream.Write(*reply);
    }
    return absl::OkStatus();
  }

  Address address_;
  const std::string token_;
  const uint32_t max_trainers_;
  const ModuleSessionFactory factory_;
  absl::Mutex mu_;
  uint32_t calls_ ABSL_GUARDED_BY(mu_) = 0;
  uint32_t entered_ ABSL_GUARDED_BY(mu_) = 0;         // trainers that have a session
  size_t expected_ ABSL_GUARDED_BY(mu_) = 0;          // workers that the job was launched with
  std::set<std::string> known_ ABSL_GUARDED_BY(mu_);  // names of trainers, as many as are expected
  std::unique_ptr<grpc::Server> server_;
};

ModuleHost::ModuleHost(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
ModuleHost::~ModuleHost() = default;

absl::StatusOr<std::unique_ptr<ModuleHost>> ModuleHost::Start(const ModuleHostOptions& options,
                                                              ModuleSessionFactory factory) {
  auto parts = std::make_unique<Parts>(options, std::move(factory));
  const absl::Status listening = parts->Listen(options.credentials);
  if (!listening.ok()) return listening;
  return std::unique_ptr<ModuleHost>(new ModuleHost(std::move(parts)));
}

const Address& ModuleHost::address() const { return parts_->address(); }

void ModuleHost::AwaitEnd() { parts_->AwaitEnd(); }

}  // namespace sluice
