// The command line of a server, in sluice_server and in rank 0 of every other program.

#ifndef SLUICE_SERVER_PROGRAM_SERVER_FLAGS_H_
#define SLUICE_SERVER_PROGRAM_SERVER_FLAGS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/encoding/transforms/builtin_transforms.h"
#include "server/program/job_server.h"
#include "server/program/security_flags.h"
#include "server/program/servers_flags.h"
#include "server/program/training_flags.h"
#include "server/server.h"

namespace CLI {
class App;
}

namespace sluice {

// The flags as the user gave them. The default of an absent value depends on the launch.
struct ServerFlags {
  TrainingFlags training;
  DurableOptions durable;
  double lease = 10;  // seconds
  double start_timeout = 0;
  uint32_t max_workers = 1024;
  absl::optional<double> max_in_flight_mb;
  double max_push_rows_mb = 64;
  absl::optional<double> max_table_memory_mb;
  std::string table_dir;
  int max_streams = RpcLimits().streams;
  int max_connections = RpcLimits().connections;
  int max_connections_per_address = RpcLimits().connections_of_one_address;
  double handshake_timeout = absl::ToDoubleSeconds(RpcLimits().handshake);
  absl::optional<uint32_t> threads;
  bool shared_memory = true;
  double log_step_wait = 5;  // seconds
  ServersFlags servers;
  std::string listen;
  std::string advertise;
  std::string interface;
  std::string token_file;
  std::string metrics;  // address; empty: none
  SecurityFlags security;
  std::string page;       // address
  std::string page_runs;  // directory; empty: none
  std::string trace;      // file; a worker has this flag too
  EventFileOptions event_files;
  bool wait_for_more = false;
  uint32_t max_restarts = 0;                           // under mpirun; see launch.h
  AttachmentHook on_attachments;                       // no flag: the program sets it
  ProgramOptimizerFactory program_optimizer;           // no flag: likewise
  FileSystem* files = &RealFileSystem();               // no flag
  TransformRegistry transforms = BuiltinTransforms();  // no flag; a worker uses them too
};

// Declares the flags in groups of `app`. `flags` must outlive the parsing.
void AddServerFlags(CLI::App& app, ServerFlags& flags);

// Returns the options of a server with a new job id, except address and credentials.
// `launched_workers` is 0 if the number of workers is unknown. The token is empty unless
// --token-file is given. `servers` is the number of the job's servers.
absl::StatusOr<ServerOptions> ServerOptionsFrom(const ServerFlags& flags, uint32_t launched_workers,
                                                uint32_t servers = 1);

// Each of the servers is on a machine like this one, and holds a part of the model.
void HoldModelInParts(uint32_t servers, ServerOptions* options);

// The options of a replica's server, from those of its leader: all but index, leader, address and
// credentials.
ReplicaServerOptions ReplicaOptionsFrom(const ServerOptions& options);

// Returns the configuration (see ConfigJson()) of a server that is started without mpirun with
// these flags. Neither --listen nor --servers is required.
absl::StatusOr<std::string> DescribeConfig(const ServerFlags& flags);

// Starts a server that was not launched by mpirun. INVALID_ARGUMENT without --listen and --servers.
absl::StatusOr<std::unique_ptr<JobServer>> StartStandaloneServer(const ServerFlags& flags);

}  // namespace sluice

#endif  // SLUICE_SERVER_PROGRAM_SERVER_FLAGS_H_
