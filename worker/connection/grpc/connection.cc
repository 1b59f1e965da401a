#include "worker/connection/grpc/connection.h"

#include <glog/logging.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/base/stop_flag.h"
#include "common/base/utf8.h"
#include "common/tensor/stripes.h"
#include "common/wire/chunk.h"
#include "common/wire/grpc_runtime.h"
#include "common/wire/messages.h"
#include "common/wire/status.h"
#include "sluice/v1/parameter_server.grpc.pb.h"
#include "worker/connection/exit_notice.h"
#include "worker/connection/grpc/answer.h"
#include "worker/connection/grpc/call.h"
#include "worker/connection/grpc/channel.h"
#include "worker/connection/grpc/dial.h"
#include "worker/connection/grpc/heartbeat.h"
#include "worker/connection/grpc/offer.h"
#include "worker/connection/grpc/pull.h"
#include "worker/connection/grpc/push.h"
#include "worker/connection/grpc/push_pull.h"
#include "worker/connection/grpc/session_events.h"
#include "worker/connection/grpc/stream.h"
#include "worker/connection/grpc/tensor_paths.h"
#include "worker/connection/name_wait.h"
#include "worker/connection/shared_parameters.h"
#include "worker/connection/striped_connection.h"

namespace sluice {
namespace {

// How long a worker that has joined tries to reach another server of the job. Then it joins again:
// that server may have been started again at another address, which the first server knows.
constexpr absl::Duration kOtherServers = absl::Seconds(3);

// Larger vectors are faster in two calls that read shared memory than in one that copies them.
constexpr uint64_t kMostBesideSharedMemory = uint64_t{1} << 12;

// So long a process that ends may take to tell the server.
constexpr absl::Duration kLastCall = absl::Seconds(2);

// A message takes well-formed text only, and a text that is cut may end with half of a character.
std::string ShortText(std::string text) {
  text.resize(std::min(text.size(), kMostFailureBytes));
  for (int tail = 0; tail < 3 && !IsUtf8(text); ++tail) text.pop_back();
  return IsUtf8(text) ? text : absl::CHexEscape(text).substr(0, kMostFailureBytes);
}

absl::Status CallLeave(v1::ParameterServer::Stub& stub, SessionId session, const Farewell& farewell,
                       absl::Duration timeout, const CallMetadata& metadata) {
  grpc::ClientContext context;
  Prepare(context, timeout, metadata);
  v1::LeaveRequest request;
  request.set_session(session.value());
  request.mutable_results()->insert(farewell.results.begin(), farewell.results.end());
  request.set_failure(ShortText(farewell.failure));
  v1::LeaveResponse response;
  return EndOf(stub.Leave(&context, request, &response));
}

// A process that ends without having left says whether it is done.
std::unique_ptr<ExitNotice> MakeExitNotice(std::shared_ptr<grpc::Channel> channel,
                                           const CallMetadata& metadata, SessionId session) {
  return std::make_unique<ExitNotice>([channel = std::move(channel), metadata, session](int code) {
    Farewell farewell;
    if (code != 0) farewell.failure = absl::StrCat("its process ended with exit code ", code);
    const auto stub = v1::ParameterServer::NewStub(channel);
    CallLeave(*stub, session, farewell, kLastCall, metadata).IgnoreError();
  });
}

// What a session has while it is open.
struct Session {
  Session(grpc::GenericStub& stub, v1::JoinRequest request, const CallMetadata& metadata)
      : events(stub, std::move(request), metadata) {}

  SessionEvents events;
  std::unique_ptr<Heartbeat> heartbeat;
  std::unique_ptr<ExitNotice> exit_notice;  // of a worker that has not left
};

// The next message of the session's stream; once there is none, the session is over. It is null if
// it was over before. DEADLINE_EXCEEDED: nothing has come for `longest`.
absl::StatusOr<v1::JoinEvent> NextMessage(Session* session, absl::Duration longest) {
  if (session == nullptr) return absl::UnavailableError("the server ended the session");
  if (session->events.Await(longest)) return session->events.Next();
  return absl::DeadlineExceededError("nothing happened to the job");
}

class GrpcConnection final : public ServerConnection {
 public:
  // `channel` is connected.
  GrpcConnection(GrpcConnectionOptions options, GrpcChannel channel)
      : options_(std::move(options)),
        metadata_{options_.token, options_.model},
        transforms_(std::make_shared<const TransformRegistry>(options_.transforms)),
        pull_encoding_(options_.pull_encoding),
        checksums_(ChecksumsFor(options_.address)),
        channel_(std::move(channel)),
        paths_(options_.address, options_.credentials, options_.connections,
               checksums_ == Checksums::kOff) {
    stub_ = v1::ParameterServer::NewStub(channel_.get());
    streams_ = std::make_unique<grpc::GenericStub>(channel_.get());
  }

  // The server may not have noticed yet that an earlier process of this name has died.
  absl::StatusOr<Welcome> Join(const JoinRequest& request) override {
    NameWait wait(options_.connect_timeout);
    for (;;) {
      auto welcome = JoinOnce(request);
      const auto pause = wait.PauseAfter(welcome.status(), RealClock().Now());
      if (!pause.has_value()) return welcome;
      const absl::optional<absl::Duration> news = wait.TakeNews();
      if (news.has_value()) {
        LOG(WARNING) << "waits up to " << absl::FormatDuration(*news)
                     << " for its name, in case the process that has it has died with its machine: "
                     << welcome.status().message();
      }
      AwaitRetry(*pause);
    }
  }

  absl::Status Reconnect() override {
    EndSession();
    paths_.CloseLanes();
    const absl::Status connected = channel_.Connect(options_.connect_timeout);
    if (!connected.ok()) {
      return absl::UnavailableError(absl::StrCat(
          "lost the server at ", options_.address, ", and it did not come back within ",
          absl::FormatDuration(options_.connect_timeout), ": ", connected.message()));
    }
    stub_ = v1::ParameterServer::NewStub(channel_.get());
    streams_ = std::make_unique<grpc::GenericStub>(channel_.get());
    return absl::OkStatus();
  }

  absl::StatusOr<JobEvent> NextEvent(absl::Duration longest) override {
    const auto event = NextMessage(session_.get(), longest);
    if (event.ok()) return FromProto(*event);
    if (!absl::IsDeadlineExceeded(event.status())) EndSession();
    return event.status();
  }

  // Only time passes: events are read when they are asked for (session_events.h).
  void AwaitRetry(absl::Duration longest) override {
    StopFlag never;
    never.WaitFor(longest);
  }

  std::unique_ptr<PendingOffer> StartOffer(SessionId session, uint32_t attempt,
                                           uint64_t elements) override {
    return StartGrpcOffer(*streams_, session, attempt, elements, checksums_, metadata_);
  }

  absl::StatusOr<uint64_t> OfferConstants(SessionId session, uint64_t checksum,
                                          const std::vector<absl::Span<char>>& values) override {
    return OfferConstantsOverGrpc(*streams_, session, checksum, values, metadata_);
  }

  absl::StatusOr<PulledConstants> PullConstants(SessionId session, uint64_t bytes) override {
    return PullConstantsOverGrpc(*streams_, session, bytes, metadata_);
  }

  absl::StatusOr<PulledState> PullState(SessionId session,
                                        absl::optional<uint64_t> steps) override {
    return PullStateOverGrpc(*streams_, session, steps, metadata_);
  }

  absl::Status OfferState(SessionId session, const absl::StatusOr<std::string>& bytes) override {
    return OfferStateOverGrpc(*streams_, session, bytes, metadata_);
  }

  absl::StatusOr<PulledSlots> PullSlots(SessionId session, uint64_t elements) override {
    return PullSlotsOverGrpc(*streams_, session, elements, metadata_);
  }

  std::unique_ptr<OutgoingPush> StartPush(const PushHeader& header, uint64_t elements,
                                          BatchIs batch, const RowGradients& rows) override {
    return StartGrpcPush(*streams_, header, elements, batch, rows,
                         {metadata_, paths_.memory(), options_.trace, checksums_, paths_.UseLanes(),
                          transforms_, paths_.chooser()});
  }

  void UsePullEncoding(const Encoding& encoding) override { pull_encoding_ = encoding; }

  bool measures_push() const override { return paths_.measures_push(); }

  void BeginSession(SessionId session, uint64_t elements,
                    std::shared_ptr<const SharedMemory> memory) override {
    paths_.Begin(session, elements, std::move(memory));
    one_of_several_ = true;
  }

  void ReadWhereTheyLie(bool may) override { reads_where_they_lie_ = may; }

  bool stays_on_machine() const override {
    return paths_.memory() != nullptr || absl::StartsWith(options_.address, "unix:");
  }

  std::unique_ptr<PendingPull> StartPull(const PullRequest& request) override {
    const bool shares =
        paths_.memory() != nullptr && pull_encoding_.plain() && reads_where_they_lie_;
    SharedParameters* const shared = shares ? &shared_parameters_ : nullptr;
    return StartGrpcPull(
        *streams_, request, shared,
        {options_.pull_timeout, metadata_, options_.trace, pull_encoding_, paths_.UseLanes(),
         transforms_, one_of_several_ ? paths_.offer() : nullptr});
  }

  // A server that takes a worker of this revision has PushPull, if it is the job's only one. With a
  // trace they are two calls, so that it shows each.
  bool CanPushPull(uint64_t elements) const override {
    const uint64_t most =
        paths_.memory() != nullptr ? kMostBesideSharedMemory : kMostPushPullElements;
    return options_.one_call && session_ != nullptr && !one_of_several_ && elements > 0 &&
           elements <= most && options_.trace == nullptr && pull_encoding_.plain();
  }

  absl::StatusOr<PushPullAnswer> PushPull(const PushHeader& header, const SharedFloats& gradient,
                                          const PullRequest& request,
                                          absl::Span<float> parameters) override {
    return GrpcPushPull(*streams_, header, gradient, request, parameters,
                        {options_.pull_timeout, metadata_, checksums_});
  }

  std::unique_ptr<PendingPull> StartRowPull(const PullRequest& request,
                                            const std::vector<RowIds>& rows) override {
    const bool of_matrices = pull_encoding_.transform == ValueTransform::kLowRank;
    return StartGrpcRowPull(
        *streams_, request, rows,
        {options_.pull_timeout, metadata_, options_.trace,
         of_matrices ? Encoding() : pull_encoding_, LaneUse(), transforms_, nullptr});
  }

  absl::Status Report(SessionId session, const StepMeasurement& measurement) override {
    grpc::ClientContext context;
    Prepare(context, kCallTimeout, metadata_);
    v1::HeartbeatRequest request;
    request.set_session(session.value());
    request.mutable_measurement()->set_step(measurement.step.value());
    request.mutable_measurement()->mutable_results()->insert(measurement.results.begin(),
                                                             measurement.results.end());
    v1::HeartbeatResponse response;
    return EndOf(stub_->Heartbeat(&context, request, &response));
  }

  absl::Status Leave(SessionId session, const Farewell& farewell) override {
    if (session_ != nullptr) session_->exit_notice = nullptr;
    return CallLeave(*stub_, session, farewell, kCallTimeout, metadata_);
  }

 private:
  absl::StatusOr<Welcome> JoinOnce(const JoinRequest& request) {
    EndSession();
    v1::JoinRequest message = ToProto(request);
    message.set_protocol(options_.revisions.newest);
    CallMetadata joins = metadata_;
    joins.begins_model = request.role == SessionRole::kWorker;
    session_ = std::make_unique<Session>(*streams_, std::move(message), joins);
    const auto event = NextMessage(session_.get(), absl::InfiniteDuration());
    if (!event.ok()) {
      EndSession();
      return event.status();
    }
    if (!event->has_welcome()) return UnexpectedMessage("Join", "welcome");
    const absl::Status fits = CheckServerRevision(options_.revisions, event->welcome().protocol(),
                                                  event->welcome().version());
    if (!fits.ok()) {
      EndSession();
      return fits;
    }
    auto welcome = FromProto(event->welcome());
    if (welcome.ok()) {
      const auto servers = static_cast<uint32_t>(welcome->servers.size());
      paths_.Begin(welcome->session,
                   Stripes(request.layout.size(), std::max(uint32_t{1}, servers)).SizeOf(0),
                   request.memory);
      paths_.offer()->SetAccepted(event->welcome().shares_memory());
      one_of_several_ = servers > 1;
      if (options_.trace != nullptr) {
        CompareClocks(*stub_, welcome->session, metadata_, *options_.trace);
      }
      session_->heartbeat = std::make_unique<Heartbeat>(*stub_, welcome->session, welcome->lease,
                                                        metadata_, options_.trace);
      if (request.role == SessionRole::kWorker) {
        session_->exit_notice = MakeExitNotice(channel_.get(), metadata_, welcome->session);
      }
    }
    return welcome;
  }

  void EndSession() {
    session_ = nullptr;
    paths_.End();
  }

  const GrpcConnectionOptions options_;
  const CallMetadata metadata_;
  const std::shared_ptr<const TransformRegistry> transforms_;
  Encoding pull_encoding_;
  const Checksums checksums_;  // of chunks that are not encoded
  GrpcChannel channel_;
  TensorPaths paths_;
  std::unique_ptr<v1::ParameterServer::Stub> stub_;
  std::unique_ptr<grpc::GenericStub> streams_;  // for calls that carry tensors
  std::unique_ptr<Session> session_;  // null also if the worker has joined at another server
  bool one_of_several_ = false;       // the server
  bool reads_where_they_lie_ = true;
  SharedParameters shared_parameters_;
};

// Connects to one server.
absl::StatusOr<std::unique_ptr<ServerConnection>> Dial(const GrpcConnectionOptions& options) {
  auto channel = DialChannel(options);
  if (!channel.ok()) return channel.status();
  return std::unique_ptr<ServerConnection>(
      std::make_unique<GrpcConnection>(options, *std::move(channel)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ServerConnection>> ConnectOverGrpc(
    const GrpcConnectionOptions& options) {
  KeepGrpcRunning();
  auto first = Dial(options);
  if (!first.ok()) return first;
  return MakeStripedConnection(*std::move(first), [options](const std::string& address) {
    GrpcConnectionOptions other = options;
    other.address = address;
    other.trace = nullptr;  // the trace shows the stripe of the first server
    other.connect_timeout = std::min(kOtherServers, options.connect_timeout);
    return Dial(other);
  });
}

}  // namespace sluice
