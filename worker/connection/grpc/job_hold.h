// Keeps a job from ending between the models that a process trains one after the other.

#ifndef SLUICE_WORKER_CONNECTION_GRPC_JOB_HOLD_H_
#define SLUICE_WORKER_CONNECTION_GRPC_JOB_HOLD_H_

#include <grpcpp/generic/generic_stub.h>

#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/stop_flag.h"
#include "worker/connection/grpc/channel.h"
#include "worker/connection/grpc/connection.h"
#include "worker/connection/grpc/stream.h"

namespace sluice {

// Holds the job while it exists: the call HoldJob is open. If that breaks, because the server is
// started again, a thread opens it anew. The thread polls for a moment each second only: one that
// always polls would take what comes for the thread that trains (heartbeat.h).
//
// Any thread may destroy it. A process that was forked has not got the thread, and leaves the
// object alone.
class JobHold {
 public:
  // Waits for the server as ConnectOverGrpc() does, and returns when the server holds the job.
  // Errors are the server's, BAD_ARGUMENT if its job cannot have several models; UNIMPLEMENTED if
  // it is too old; and those of ConnectOverGrpc().
  static absl::StatusOr<std::unique_ptr<JobHold>> Open(const GrpcConnectionOptions& options);

  // Lets go of the job, at once while the call is open. Otherwise it waits for the try under way,
  // a few seconds at most.
  ~JobHold();

  JobHold(const JobHold&) = delete;
  JobHold& operator=(const JobHold&) = delete;

 private:
  JobHold(const std::string& token, GrpcChannel channel);

  absl::Status Begin();
  bool IsOpen();
  void Run();

  const std::string token_;
  GrpcChannel channel_;
  std::string job_id_;  // empty before the first answer
  std::unique_ptr<grpc::GenericStub> stub_;
  std::unique_ptr<GrpcStream> call_;  // null between two
  StopFlag stop_;
  std::thread thread_;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_GRPC_JOB_HOLD_H_
