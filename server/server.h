// A whole server: a shard behind its door, from start to the end of the job.

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
  // Where to listen; port 0 is any free one. Absent: a unix socket in a private directory.
  absl::optional<Address> listen;
  // That directory; empty: a new one.
  std::string directory;
  // Asked of every worker; empty asks for none.
  std::string token;
  // For mutual TLS; empty: plaintext.
  CredentialsSource credentials;
  RpcLimits limits;
  // Workers may use the encodings whose transforms are in here.
  TransformRegistry transforms = BuiltinTransforms();
  // Serve() returns when training has finished and nobody is left; otherwise it waits for more
  // workers.
  bool exit_when_finished = true;
  // That do the arithmetic; at least 1.
  uint32_t threads = 1;
  // How long a step may wait before the log says for whom.
  absl::Duration log_step_wait = absl::Seconds(5);
  // Where to keep checkpoints; with no directory named, nowhere.
  DurableOptions durable;
  // Where that directory is; outlives the server.
  FileSystem* files = &RealFileSystem();
  // The file that the server writes a trace to; empty: none.
  std::string trace_file;
  Existing existing_trace = Existing::kEmptied;
};

class Server {
 public:
  // Goes on where the directory's earlier server ended, and starts to listen. Blocks SIGINT and
  // SIGTERM in the calling thread, which must be the only one that may receive them, and the one to
  // call Serve().
  static absl::StatusOr<std::unique_ptr<Server>> Start(ServerOptions options);

  const Address& address() const { return door_->address(); }

  // Serves until the job is over, or until SIGINT, SIGTERM or Admin's Drain: then it drains.
  // Afterwards all calls have ended. Returns the process's exit code: 0; 3 if training ended
  // because every worker was lost; 4 if the counters of pushes do not balance, which is a bug; 5 if
  // the last checkpoint could not be saved.
  int Serve();

  // After Serve(): what it came to, for people.
  std::string ClosingTable() const;

  const Shard& shard() const { return shard_; }

 private:
  Server(const ServerOptions& options, std::unique_ptr<DurableDirectory> durable,
         std::unique_ptr<Trace> trace);

  absl::Status ChoosePrivateSocket(ServerOptions* options);
  absl::Status SaveLast();

  bool IsOver() const { return drained_ || (exit_when_finished_ && deserted_); }

  const bool exit_when_finished_;
  StepWaitLog step_wait_log_;
  const std::unique_ptr<Trace> trace_;  // or null
  std::unique_ptr<PrivateDirectory> directory_;
  std::atomic<bool> deserted_{false};
  std::atomic<bool> drained_{false};
  Shard shard_;
  // Or null. Tells the shard what is kept; outlives the door, whose callers wait for checkpoints.
  const std::unique_ptr<DurableDirectory> durable_;
  std::unique_ptr<GrpcServer> door_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SERVER_H_
