// Asks and changes a running server: the Inspector and Admin services, as sluicectl uses them.
//
// Answers are the messages of proto/, so that their JSON is what any other client sees.

#ifndef SLUICE_TOOLS_CTL_CLIENT_OPERATOR_CLIENT_H_
#define SLUICE_TOOLS_CTL_CLIENT_OPERATOR_CLIENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/security/credentials_source.h"
#include "sluice/v1/admin.pb.h"
#include "sluice/v1/inspector.pb.h"
#include "worker/connection/grpc/channel.h"

namespace sluice {

// Used by one thread, except for Cancel(). Every call has a deadline. Errors are the server's,
// and:
//   UNAVAILABLE    no server can be reached, or the connection broke
//   UNIMPLEMENTED  the server is older than the call
// An error of the server never has the code UNAVAILABLE without a reason.
class OperatorClient {
 public:
  static absl::StatusOr<std::unique_ptr<OperatorClient>> Connect(const GrpcEndpoint& options);

  // Connects again after the connection broke.
  absl::Status Reconnect(absl::Duration timeout);

  // Ends the call that is under way, and each later one, with UNAVAILABLE. Any thread may call it.
  void Cancel() ABSL_LOCKS_EXCLUDED(mu_);

  const std::string& address() const { return options_.address; }

  absl::StatusOr<v1::ServerState> GetState();
  // All pages as one.
  absl::StatusOr<v1::ListWorkersResponse> ListWorkers();
  absl::StatusOr<v1::ListServersResponse> ListServers();
  absl::StatusOr<v1::ListParametersResponse> ListParameters();
  absl::StatusOr<v1::ListTablesResponse> ListTables();
  absl::StatusOr<v1::GetRowResponse> GetRow(const v1::GetRowRequest& request);
  absl::StatusOr<v1::GetParameterResponse> GetParameter(const v1::GetParameterRequest& request);

  // Calls `take` with the state now and after each change, until the server ends or `take` returns
  // false. OK in both cases.
  using TakeState = std::function<bool(const v1::ServerState&)>;
  absl::Status WatchState(absl::Duration min_interval, const TakeState& take);

  absl::StatusOr<v1::SetPolicyResponse> SetPolicy(const v1::SetPolicyRequest& request);
  absl::StatusOr<v1::SetLearningRateResponse> SetLearningRate(double learning_rate);
  absl::StatusOr<v1::EvictWorkerResponse> EvictWorker(const std::string& worker);
  // Waits up to ten minutes for the disk.
  absl::StatusOr<v1::SaveCheckpointResponse> SaveCheckpoint();
  absl::StatusOr<v1::DrainResponse> Drain();

  // Calls `take` with the latest lines of the server's log and, if the request follows it, with
  // each that comes, until the server ends or `take` returns false. OK in both cases.
  using TakeLogs = std::function<bool(const v1::ReadLogsResponse&)>;
  absl::Status ReadLogs(const v1::ReadLogsRequest& request, const TakeLogs& take);

  // Calls `take` with each part of the trace, until the time is over, the server ends, or `take`
  // returns false. OK in all cases.
  using TakeTrace = std::function<bool(const v1::CollectTraceResponse&)>;
  absl::Status CollectTrace(const v1::CollectTraceRequest& request, const TakeTrace& take);

 private:
  // The context of the call under way; Cancel() reaches it while this object lives.
  class OpenCall;

  explicit OperatorClient(GrpcEndpoint options);

  // `call` makes the gRPC call with a prepared context.
  template <typename Response, typename Call>
  absl::StatusOr<Response> Ask(absl::Duration timeout, const Call& call);
  // Reads a stream until it ends or `take` returns false. `open` makes the gRPC call.
  template <typename Message, typename Open>
  absl::Status Follow(const Open& open, const std::function<bool(const Message&)>& take);
  absl::Status Explained(const absl::Status& status) const;

  const GrpcEndpoint options_;
  GrpcChannel channel_;
  absl::Mutex mu_;
  OpenCall* call_ ABSL_GUARDED_BY(mu_) = nullptr;  // or none
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace sluice

#endif  // SLUICE_TOOLS_CTL_CLIENT_OPERATOR_CLIENT_H_
