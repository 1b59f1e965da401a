// A server of a job with several servers that is not the leader, which messages call the first
// server. It has a stripe of the vector and follows the leader, which decides everything.
// server/replica/ has the protocol. Used by sluice_server and by Job.
//
// With a directory for checkpoints it outlives the leader's incarnations: when the leader begins
// another one, this server begins anew, too, in the same process and at the same address, and loads
// its stripe from the checkpoint.

#ifndef SLUICE_SERVER_REPLICA_SERVER_H_
#define SLUICE_SERVER_REPLICA_SERVER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/encoding/transforms/builtin_transforms.h"
#include "common/net/address.h"
#include "common/security/credentials_source.h"
#include "common/storage/file_system.h"
#include "server/durable/durable_options.h"
#include "server/rpc/access/rpc_limits.h"
#include "server/snapshots/snapshot_store.h"
#include "server/state/table_memory.h"

namespace sluice {

struct ReplicaServerOptions {
  uint32_t index = 1;    // of this server: from 1 to `servers` - 1
  uint32_t servers = 2;  // of the job
  // The leader's gRPC target: "unix:/…" or "host:port". The leader may start later than this
  // server.
  std::string leader;
  // The job that the leader must run; empty: the one that it runs.
  std::string job_id;
  // Workers present this token to this server, and this server to the leader; empty: none.
  std::string token;
  // For mutual TLS, with workers and with the leader; this server's certificate has the role
  // sluice:server. Empty: plaintext.
  CredentialsSource credentials;
  // Where to listen; port 0 means any free port. Absent: a unix socket in a private directory.
  absl::optional<Address> listen;
  // The host by which workers reach it, joined with the port that it listens on; empty: that of the
  // address it listens on. Not for a unix socket.
  std::string advertised_host;
  // The private directory; empty: a new one is made.
  std::string directory;
  // Where the stripe's part of checkpoints is saved; empty: nowhere. Servers may share it. The
  // leader must have one, too.
  std::string checkpoint_directory;
  Durability durability = Durability::kMemory;  // the leader must have the same
  FileSystem* files = &RealFileSystem();
  TableMemory table_memory;
  // Where rows of tables lie that do not fit into it; empty: nowhere.
  std::string table_directory;
  RpcLimits limits;
  // Workers may use the encodings whose transforms are in here.
  TransformRegistry transforms = BuiltinTransforms();
  // kShared: workers of this node use shared memory.
  SnapshotMemory snapshots = SnapshotMemory::kPrivate;
  // Threads for arithmetic; at least 1.
  uint32_t threads = 1;
  uint32_t expected_workers = 1;  // see GrpcServerOptions::workers
  // How long it waits for the leader at its start.
  absl::Duration connect_timeout = absl::Seconds(60);
  // How long it waits after the connection broke. The leader waits for as long.
  absl::Duration lease = absl::Seconds(10);
  // How long calls under way may take to end when the server goes down.
  absl::Duration grace = absl::Seconds(2);
};

// Start() and Serve() are called by one thread. Any thread may call address().
class ReplicaServer {
 public:
  // Starts to listen; the leader need not be there. Blocks SIGINT and SIGTERM in the calling
  // thread. That thread must be the only one of the process that can receive them, and must be the
  // one that calls Serve(). BAD_ARGUMENT if the index is not that of a replica. Other errors are
  // those of the address and of the credentials.
  static absl::StatusOr<std::unique_ptr<ReplicaServer>> Start(ReplicaServerOptions options);

  virtual ~ReplicaServer() = default;

  virtual const Address& address() const = 0;

  // Follows the leader until it ends the job. All calls have ended when it returns. After SIGINT or
  // SIGTERM, which usually go to all servers, it waits `grace` for that end. With checkpoints it
  // waits for as long as the leader, which may be saving the last one, is connected. Returns the
  // process's exit code: the one with which the leader ends; 1 if the leader did not come, has gone
  // for good, or does not end the job after a signal; 2 if it refuses this server, for example
  // because it runs another job or has this index already. The log says why.
  virtual int Serve() = 0;

  // After Serve(): whether the leader has ended the job. Then the leader's log says why.
  virtual bool ended_by_first_server() const = 0;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_REPLICA_SERVER_H_
