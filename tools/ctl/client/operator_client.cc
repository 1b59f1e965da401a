#include "tools/ctl/client/operator_client.h"

#include <grpcpp/grpcpp.h>

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/base/version.h"
#include "common/wire/grpc_runtime.h"
#include "common/wire/settings.h"
#include "common/wire/status.h"
#include "sluice/v1/admin.grpc.pb.h"
#include "sluice/v1/inspector.grpc.pb.h"
#include "worker/connection/grpc/call.h"

namespace sluice {
namespace {

constexpr absl::Duration kAnswerTimeout = absl::Seconds(30);
constexpr absl::Duration kDiskTimeout = absl::Minutes(10);

// The pages of a million tensors, the most that a layout has.
constexpr int kMostPages = 10'000;

// Reads all pages of a list as one. `ask` gets a page by its token.
template <typename List, typename AskPage>
absl::StatusOr<List> ReadPages(const AskPage& ask) {
  List all;
  for (int pages = 0; pages < kMostPages; ++pages) {
    const absl::StatusOr<List> page = ask(all.next_page_token());
    if (!page.ok()) return page.status();
    all.clear_next_page_token();
    all.MergeFrom(*page);
    if (all.next_page_token().empty()) return all;
  }
  return absl::InternalError(absl::StrCat("the server's list has more than ", kMostPages,
                                          " pages, the most that one has; is it a Sluice server?"));
}

}  // namespace

class OperatorClient::OpenCall {
 public:
  OpenCall(OperatorClient& client, absl::Duration timeout) : client_(client) {
    Prepare(context_, timeout, {client.options_.token, client.options_.model});
    absl::MutexLock lock(&client.mu_);
    client.call_ = this;
    if (client.cancelled_) context_.TryCancel();
  }
  ~OpenCall() {
    absl::MutexLock lock(&client_.mu_);
    client_.call_ = nullptr;
  }

  OpenCall(const OpenCall&) = delete;
  OpenCall& operator=(const OpenCall&) = delete;

  grpc::ClientContext& context() { return context_; }

 private:
  OperatorClient& client_;
  grpc::ClientContext context_;
};

void OperatorClient::Cancel() {
  absl::MutexLock lock(&mu_);
  cancelled_ = true;
  if (call_ != nullptr) call_->context().TryCancel();
}

OperatorClient::OperatorClient(GrpcEndpoint options)
    : options_(std::move(options)),
      channel_(options_.address, options_.credentials, Connection::kOfItsOwn) {}

absl::StatusOr<std::unique_ptr<OperatorClient>> OperatorClient::Connect(
    const GrpcEndpoint& options) {
  KeepGrpcRunning();
  auto client = absl::WrapUnique(new OperatorClient(options));
  const absl::Status connected = client->Reconnect(options.connect_timeout);
  if (!connected.ok()) return connected;
  return client;
}

absl::Status OperatorClient::Reconnect(absl::Duration timeout) {
  const absl::Status connected = channel_.Connect(timeout);
  if (!absl::IsUnavailable(connected)) return connected;
  return absl::UnavailableError(absl::StrCat(
      "no server at ", options_.address, " within ", absl::FormatDuration(timeout), ": ",
      connected.message(), "; is it running, is the address right, and do both sides ",
      options_.credentials == nullptr ? "speak plaintext?" : "trust each other's certificates?"));
}

template <typename Response, typename Call>
absl::StatusOr<Response> OperatorClient::Ask(absl::Duration timeout, const Call& call) {
  OpenCall underway(*this, timeout);
  Response response;
  const grpc::Status status = call(&underway.context(), &response);
  if (!status.ok()) return Explained(FromGrpcStatus(status));
  return response;
}

template <typename Message, typename Open>
absl::Status OperatorClient::Follow(const Open& open,
                                    const std::function<bool(const Message&)>& take) {
  OpenCall underway(*this, absl::InfiniteDuration());
  const auto messages = open(&underway.context());
  Message message;
  bool wanted = true;
  while (wanted && messages->Read(&message)) wanted = take(message);
  if (!wanted) underway.context().TryCancel();
  const grpc::Status end = messages->Finish();
  return wanted && !end.ok() ? Explained(FromGrpcStatus(end)) : absl::OkStatus();
}

// Says what to do about an error of the server or of the connection.
absl::Status OperatorClient::Explained(const absl::Status& status) const {
  const Reason reason = ReasonOf(status);
  if (absl::IsUnimplemented(status)) {
    return absl::UnimplementedError(
        absl::StrCat("the server at ", options_.address, " does not know this call (",
                     status.message(), "): it is older than this program (Sluice ", kVersion,
                     "), or no server of Sluice; upgrade the server or check the address"));
  }
  if (reason == Reason::kBadToken) {
    return MakeError(reason, absl::StrCat(status.message(),
                                          "; give --token-file with the token with which the "
                                          "server was started; a job of mpirun has a random one, "
                                          "unless it was started with --token-file, too"));
  }
  if (absl::IsPermissionDenied(status)) {
    return MakeError(
        status.code(), reason,
        absl::StrCat(status.message(), "; give --tls-cert and --tls-key of such a role"));
  }
  if (absl::IsDeadlineExceeded(status) || absl::IsCancelled(status)) {
    return absl::UnavailableError(absl::StrCat("lost the server at ", options_.address, ": ",
                                               status.message(), "; does it still run?"));
  }
  if (!absl::IsUnavailable(status) || reason != Reason::kNone) return status;
  // As long as the connection holds, it was the server that said so.
  if (channel_.get()->GetState(false) == GRPC_CHANNEL_READY) {
    return absl::FailedPreconditionError(status.message());
  }
  return absl::UnavailableError(absl::StrCat("lost the server at ", options_.address, ": ",
                                             status.message(), "; does it still run?"));
}

// ---- Inspector ----

absl::StatusOr<v1::ServerState> OperatorClient::GetState() {
  return Ask<v1::ServerState>(kAnswerTimeout, [this](grpc::ClientContext* context, auto* response) {
    return v1::Inspector::NewStub(channel_.get())
        ->GetServerState(context, v1::GetServerStateRequest(), response);
  });
}

absl::StatusOr<v1::ListWorkersResponse> OperatorClient::ListWorkers() {
  const auto stub = v1::Inspector::NewStub(channel_.get());
  return ReadPages<v1::ListWorkersResponse>([&](const std::string& token) {
    v1::ListWorkersRequest request;
    request.set_page_token(token);
    return Ask<v1::ListWorkersResponse>(kAnswerTimeout, [&](auto* context, auto* response) {
      return stub->ListWorkers(context, request, response);
    });
  });
}

absl::StatusOr<v1::ListServersResponse> OperatorClient::ListServers() {
  return Ask<v1::ListServersResponse>(kAnswerTimeout, [this](auto* context, auto* response) {
    return v1::Inspector::NewStub(channel_.get())
        ->ListServers(context, v1::ListServersRequest(), response);
  });
}

absl::StatusOr<v1::ListParametersResponse> OperatorClient::ListParameters() {
  const auto stub = v1::Inspector::NewStub(channel_.get());
  return ReadPages<v1::ListParametersResponse>([&](const std::string& token) {
    v1::ListParametersRequest request;
    request.set_page_token(token);
    return Ask<v1::ListParametersResponse>(kAnswerTimeout, [&](auto* context, auto* response) {
      return stub->ListParameters(context, request, response);
    });
  });
}

absl::StatusOr<v1::ListTablesResponse> OperatorClient::ListTables() {
  const auto stub = v1::Inspector::NewStub(channel_.get());
  return ReadPages<v1::ListTablesResponse>([&](const std::string& token) {
    v1::ListTablesRequest request;
    request.set_page_token(token);
    return Ask<v1::ListTablesResponse>(kAnswerTimeout, [&](auto* context, auto* response) {
      return stub->ListTables(context, request, response);
    });
  });
}

absl::StatusOr<v1::GetRowResponse> OperatorClient::GetRow(const v1::GetRowRequest& request) {
  return Ask<v1::GetRowResponse>(kAnswerTimeout, [&](auto* context, auto* response) {
    return v1::Inspector::NewStub(channel_.get())->GetRow(context, request, response);
  });
}

absl::StatusOr<v1::GetParameterResponse> OperatorClient::GetParameter(
    const v1::GetParameterRequest& request) {
  return Ask<v1::GetParameterResponse>(kAnswerTimeout, [&](auto* context, auto* response) {
    return v1::Inspector::NewStub(channel_.get())->GetParameter(context, request, response);
  });
}

absl::Status OperatorClient::WatchState(absl::Duration min_interval, const TakeState& take) {
  v1::WatchStateRequest request;
  *request.mutable_min_interval() = ToProto(min_interval);
  const auto stub = v1::Inspector::NewStub(channel_.get());
  return Follow<v1::ServerState>(
      [&](grpc::ClientContext* context) { return stub->WatchState(context, request); }, take);
}

// ---- Admin ----

absl::StatusOr<v1::SetPolicyResponse> OperatorClient::SetPolicy(
    const v1::SetPolicyRequest& request) {
  return Ask<v1::SetPolicyResponse>(kAnswerTimeout, [&](auto* context, auto* response) {
    return v1::Admin::NewStub(channel_.get())->SetPolicy(context, request, response);
  });
}

absl::StatusOr<v1::SetLearningRateResponse> OperatorClient::SetLearningRate(double learning_rate) {
  v1::SetLearningRateRequest request;
  request.set_learning_rate(learning_rate);
  return Ask<v1::SetLearningRateResponse>(kAnswerTimeout, [&](auto* context, auto* response) {
    return v1::Admin::NewStub(channel_.get())->SetLearningRate(context, request, response);
  });
}

absl::StatusOr<v1::EvictWorkerResponse> OperatorClient::EvictWorker(const std::string& worker) {
  v1::EvictWorkerRequest request;
  request.set_worker(worker);
  return Ask<v1::EvictWorkerResponse>(kAnswerTimeout, [&](auto* context, auto* response) {
    return v1::Admin::NewStub(channel_.get())->EvictWorker(context, request, response);
  });
}

absl::StatusOr<v1::SaveCheckpointResponse> OperatorClient::SaveCheckpoint() {
  return Ask<v1::SaveCheckpointResponse>(kDiskTimeout, [&](auto* context, auto* response) {
    return v1::Admin::NewStub(channel_.get())
        ->SaveCheckpoint(context, v1::SaveCheckpointRequest(), response);
  });
}

absl::StatusOr<v1::DrainResponse> OperatorClient::Drain() {
  return Ask<v1::DrainResponse>(kAnswerTimeout, [&](auto* context, auto* response) {
    return v1::Admin::NewStub(channel_.get())->Drain(context, v1::DrainRequest(), response);
  });
}

absl::Status OperatorClient::ReadLogs(const v1::ReadLogsRequest& request, const TakeLogs& take) {
  const auto stub = v1::Admin::NewStub(channel_.get());
  return Follow<v1::ReadLogsResponse>(
      [&](grpc::ClientContext* context) { return stub->ReadLogs(context, request); }, take);
}

absl::Status OperatorClient::CollectTrace(const v1::CollectTraceRequest& request,
                                          const TakeTrace& take) {
  const auto stub = v1::Admin::NewStub(channel_.get());
  return Follow<v1::CollectTraceResponse>(
      [&](grpc::ClientContext* context) { return stub->CollectTrace(context, request); }, take);
}

}  // namespace sluice
