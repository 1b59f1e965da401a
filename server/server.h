// A whole server: a shard, its gRPC server and its directory, from the start to the end of the job.
// Used by sluice_server and by Job.

#ifndef SLUICE_SERVER_SERVER_H_
#define SLUICE_SERVER_SERVER_H_

#include <atomic>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/encoding/transforms/builtin_transforms.h"
#include "common/net/address.h"
#include "common/net/private_directory.h"
#include "common/security/credentials_source.h"
#include "common/storage/file_system.h"
#include "common/trace/trace.h"
#include "server/durable/directory.h"
#include "server/rpc/access/rpc_limits.h"
#include "server/rpc/server.h"
#include "server/shard/shard.h"
#include "server/step_wait_log.h"

namespace sluice {

struct ServerOptions {
  ShardOptions shard;
  // Where to listen; port 0 means any free port. Absent: a unix socket in a private directory.
  absl::optional<Address> listen;
  // The private directory; empty: a new one is made.
  std::string directory;
  // Workers and Admin's callers must present this token; empty: none.
  std::string token;
  // For mutual TLS; empty: plaintext.
  CredentialsSource credentials;
  RpcLimits limits;
  // Workers may use the encodings whose transforms are in here.
  TransformRegistry transforms = BuiltinTransforms();
  // If true, Serve() returns when all workers and observers have left. If false, it waits for more
  // workers.
  bool exit_when_finished = true;
  // Threads for arithmetic; at least 1.
  uint32_t threads = 1;
  // How long calls under way may take to end when the server goes down.
  absl::Duration grace = absl::Seconds(2);
  // The wait of a step after which the log names the workers that it waits for.
  absl::Duration log_step_wait = absl::Seconds(5);
  // Where and how often to save checkpoints; with an empty directory: never.
  DurableOptions durable;
  // The file system of that directory; outlives the server.
  FileSystem* files = &RealFileSystem();
  // The file of the server's trace; empty: none.
  std::string trace_file;
  Existing existing_trace = Existing::kEmptied;
};

// Start() and Serve() are called by one thread, the others by any.
class Server {
 public:
  // Restores the state in the directory, if there is one, and starts to listen. Blocks SIGINT and
  // SIGTERM in the calling thread. That thread must be the only one of the process that can receive
  // them, and must be the one that calls Serve(). Errors are those of DurableDirectory::Open(),
  // Recover(), StartGrpcServer(), and of files that cannot be created.
  static absl::StatusOr<std::unique_ptr<Server>> Start(ServerOptions options);

  const Address& address() const { return grpc_server_->address(); }

  // Serves until the job is over, or until SIGINT, SIGTERM or Admin's Drain; then it drains. All
  // calls have ended when it returns. Returns the process's exit code: 0; 3 if training ended
  // because every worker was lost; 4 if the counters of pushes do not balance, which is a bug; 5 if
  // the last checkpoint could not be saved; 7 if training diverged and Guards.on_divergence says
  // that the job ends then. Only in that case no last checkpoint is saved.
  int Serve();

  // After Serve(): the table for people; see closing_table.h.
  std::string ClosingTable() const;

  const Shard& shard() const { return shard_; }

 private:
  Server(const ServerOptions& options, std::unique_ptr<DurableDirectory> durable,
         std::unique_ptr<Trace> trace);

  absl::Status ChoosePrivateSocket(ServerOptions* options);
  void AwaitFarewell();
  absl::Status SaveLast();
  std::string HowToGoBack(const ShardStatus& state);

  bool IsOver() const { return drained_ || (exit_when_finished_ && deserted_); }

  const bool exit_when_finished_;
  const absl::Duration grace_;
  StepWaitLog step_wait_log_;
  const std::unique_ptr<Trace> trace_;  // or null
  const absl::Duration lease_;
  std::unique_ptr<PrivateDirectory> directory_;
  std::atomic<bool> deserted_{false};
  std::atomic<bool> drained_{false};
  Shard shard_;
  // Or null. It tells the shard which steps are durable. It outlives grpc_server_, whose callers
  // wait for checkpoints.
  const std::unique_ptr<DurableDirectory> durable_;
  std::unique_ptr<GrpcServer> grpc_server_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SERVER_H_
