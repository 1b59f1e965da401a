#include "server/rpc/operator/passing_inspector.h"

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/wire/deadline.h"
#include "common/wire/status.h"
#include "server/rpc/operator/get_row.h"
#include "server/rpc/operator/passed_watch.h"
#include "sluice/v1/inspector.grpc.pb.h"

namespace sluice {
namespace {

using grpc::CallbackServerContext;

constexpr int kMostPassed = 64;  // calls, and as many streams
constexpr size_t kMostRequestBytes = 16 << 10;

// A call to the first server, which ends when the caller's does.
struct PassedCall {
  std::unique_ptr<grpc::ClientContext> context;
  std::shared_ptr<v1::Inspector::Stub> stub;
};

class GrpcPassingInspector final : public v1::Inspector::CallbackService {
 public:
  GrpcPassingInspector(PassingInspectorOptions options, OpenWatches& watches)
      : options_(std::move(options)), watches_(watches) {}

  grpc::ServerUnaryReactor* GetServerState(CallbackServerContext* context,
                                           const v1::GetServerStateRequest* request,
                                           v1::ServerState* response) override {
    return Pass(context, request, response, &Async::GetServerState);
  }
  grpc::ServerUnaryReactor* ListWorkers(CallbackServerContext* context,
                                        const v1::ListWorkersRequest* request,
                                        v1::ListWorkersResponse* response) override {
    return Pass(context, request, response, &Async::ListWorkers);
  }
  grpc::ServerUnaryReactor* ListServers(CallbackServerContext* context,
                                        const v1::ListServersRequest* request,
                                        v1::ListServersResponse* response) override {
    return Pass(context, request, response, &Async::ListServers);
  }
  grpc::ServerUnaryReactor* ListParameters(CallbackServerContext* context,
                                           const v1::ListParametersRequest* request,
                                           v1::ListParametersResponse* response) override {
    return Pass(context, request, response, &Async::ListParameters);
  }
  grpc::ServerUnaryReactor* GetParameter(CallbackServerContext* context,
                                         const v1::GetParameterRequest* request,
                                         v1::GetParameterResponse* response) override {
    return Pass(context, request, response, &Async::GetParameter);
  }

  grpc::ServerUnaryReactor* ListTables(CallbackServerContext* context,
                                       const v1::ListTablesRequest* request,
                                       v1::ListTablesResponse* response) override {
    return Pass(context, request, response, &Async::ListTables);
  }
  grpc::ServerUnaryReactor* GetRow(CallbackServerContext* context, const v1::GetRowRequest* request,
                                   v1::GetRowResponse* response) override {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(ToGrpcStatus(AnswerGetRow(*request, options_.rows(), *response)));
    return reactor;
  }

  grpc::ServerWriteReactor<v1::ServerState>* WatchState(
      CallbackServerContext* context, const v1::WatchStateRequest* request) override {
    PassedWatch::Open open;
    open.status = Begin(*request, open_streams_);
    if (open.status.ok()) {
      auto stub = Connected();
      open.status = stub.status();
      if (stub.ok()) open.stub = *std::move(stub);
    }
    open.context = grpc::ClientContext::FromCallbackServerContext(*context);
    open.translate = [this](const grpc::Status& status) { return Translated(status); };
    open.done = [this] { --open_streams_; };
    return new PassedWatch(*request, std::move(open), watches_);
  }

 private:
  using Async = v1::Inspector::StubInterface::async_interface;
  template <typename Request, typename Response>
  using Method = void (Async::*)(grpc::ClientContext*, const Request*, Response*,
                                 std::function<void(grpc::Status)>);

  // Counts the call, which then is to be counted out, whatever this returns.
  static absl::Status Begin(const google::protobuf::Message& request, std::atomic<int>& open) {
    if (++open > kMostPassed) {
      return absl::ResourceExhaustedError(
          absl::StrCat("this server passes ", kMostPassed,
                       " calls on to the first server, the limit; call again, or call the first "
                       "server"));
    }
    const size_t bytes = request.ByteSizeLong();
    if (bytes <= kMostRequestBytes) return absl::OkStatus();
    return absl::ResourceExhaustedError(absl::StrCat("the request has ", bytes,
                                                     " bytes, and this server passes on at most ",
                                                     kMostRequestBytes, "; call the first server"));
  }

  template <typename Request, typename Response>
  grpc::ServerUnaryReactor* Pass(CallbackServerContext* context, const Request* request,
                                 Response* response, Method<Request, Response> method) {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    const auto end = [this, reactor](const grpc::Status& status) {
      --open_calls_;
      reactor->Finish(status);
    };
    const absl::Status begun = Begin(*request, open_calls_);
    const auto stub = begun.ok() ? Connected() : begun;
    if (!stub.ok()) {
      end(ToGrpcStatus(stub.status()));
      return reactor;
    }
    const auto call = std::make_shared<PassedCall>();
    call->context = grpc::ClientContext::FromCallbackServerContext(*context);
    const gpr_timespec deadline = DeadlineAfter(options_.patience);
    const gpr_timespec own = context->raw_deadline();
    const gpr_timespec own_clock = gpr_convert_clock_type(own, deadline.clock_type);
    call->context->set_deadline(gpr_time_min(deadline, own_clock));
    call->stub = *stub;
    (call->stub->async()->*method)(
        call->context.get(), request, response,
        [this, call, end](const grpc::Status& status) { end(Translated(status)); });
    return reactor;
  }

  // The stub of the latest connection, or of a new one if that has failed.
  absl::StatusOr<std::shared_ptr<v1::Inspector::Stub>> Connected() ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    if (stub_ != nullptr) return stub_;
    auto channel = options_.connect();
    if (!channel.ok()) return channel.status();
    stub_ = v1::Inspector::NewStub(*std::move(channel));
    return stub_;
  }

  // What the first server says stays as it is.
  grpc::Status Translated(const grpc::Status& status) ABSL_LOCKS_EXCLUDED(mu_) {
    if (!status.error_details().empty()) return status;
    if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
      return {status.error_code(),
              absl::StrCat("the first server, at ", options_.first_server,
                           ", has not answered in time; call again, or look at its log")};
    }
    if (status.error_code() != grpc::StatusCode::UNAVAILABLE) return status;
    absl::MutexLock lock(&mu_);
    stub_ = nullptr;
    return {status.error_code(),
            absl::StrCat("this server cannot reach the first server, at ", options_.first_server,
                         ", which has the state of the job: ", status.error_message(),
                         "; call again when it runs")};
  }

  const PassingInspectorOptions options_;
  OpenWatches& watches_;
  std::atomic<int> open_calls_{0};
  std::atomic<int> open_streams_{0};
  absl::Mutex mu_;
  std::shared_ptr<v1::Inspector::Stub> stub_ ABSL_GUARDED_BY(mu_);  // null: connect
};

}  // namespace

std::unique_ptr<grpc::Service> MakeGrpcPassingInspector(PassingInspectorOptions options,
                                                        OpenWatches& watches) {
  return std::make_unique<GrpcPassingInspector>(std::move(options), watches);
}

}  // namespace sluice
