// The options of a whole server.

#ifndef SLUICE_SERVER_SERVER_OPTIONS_H_
#define SLUICE_SERVER_SERVER_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/encoding/transforms/builtin_transforms.h"
#include "common/net/address.h"
#include "common/security/credentials_source.h"
#include "common/storage/file_system.h"
#include "common/trace/trace.h"
#include "server/durable/durable_options.h"
#include "server/events/event_files.h"
#include "server/operator/log_ring.h"
#include "server/rpc/access/rpc_limits.h"
#include "server/state/shard_options.h"
#include "server/web/http/http_server.h"

namespace sluice {

struct ServerOptions {
  ShardOptions shard;
  // Where to listen; port 0 means any free port. Absent: a unix socket in a private directory.
  absl::optional<Address> listen;
  // The number of the job's servers. This is the first one; the others are ReplicaServers, and hold
  // one stripe of the vector each.
  uint32_t servers = 1;
  // How long another server whose connection broke may be away.
  absl::Duration server_lease = absl::Seconds(10);
  // With several servers: the host by which workers reach this one, joined with the port that it
  // listens on; empty: that of `listen`. Not for a unix socket.
  std::string advertised_host;
  // The private directory; empty: a new one is made.
  std::string directory;
  // Workers and Admin's callers must present this token; empty: none.
  std::string token;
  // For mutual TLS; empty: plaintext.
  CredentialsSource credentials;
  RpcLimits limits;
  // Workers may use the encodings whose transforms are in here.
  TransformRegistry transforms = BuiltinTransforms();
  // If true, Serve() returns when all workers and observers have gone (Roster::CheckFinished()). If
  // false, it waits for more workers.
  bool exit_when_finished = true;
  // Returns whether all ranks of the launch that still run are servers. No worker can join then.
  // Empty: there is no launch, or its ranks are on several nodes, so that nobody can tell.
  std::function<bool()> is_left_alone;
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
  // Where rows of tables lie that do not fit into ShardOptions::table_memory; empty: nowhere.
  std::string table_directory;
  // Where /metrics is served; absent: nowhere.
  absl::optional<HttpOptions> metrics;
  // Where the live page is served; absent: nowhere. Both may have one address.
  absl::optional<HttpOptions> page;
  std::string page_runs;  // directory of the runs that the page shows; empty: none
  // The latest lines of the log, for the page's operator and for Admin.
  std::shared_ptr<const LogRing> log = std::make_shared<LogRing>();
  std::string configuration;  // JSON, which the page shows to operators; empty: unknown
  uint64_t memory_limit = 0;  // bytes that this process may use; 0: unknown
  EventFileOptions event_files;
  // The file of the server's trace; empty: none.
  std::string trace_file;
  Existing existing_trace = Existing::kEmptied;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SERVER_OPTIONS_H_
