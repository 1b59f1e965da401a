// The command line of a server, wherever it runs: sluice_server, or rank 0 of a program of one's
// own.

#ifndef SLUICE_SERVER_SERVER_FLAGS_H_
#define SLUICE_SERVER_SERVER_FLAGS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/job_ticket.h"
#include "common/mpi_bootstrap.h"
#include "server/security_flags.h"
#include "server/server.h"
#include "server/training_flags.h"

namespace CLI {
class App;
}

namespace sluice {

// As given; absent values get defaults that depend on the launch.
struct ServerFlags {
  TrainingFlags training;
  DurableOptions durable;
  double lease = 10;  // seconds
  absl::optional<double> start_timeout;
  uint32_t max_workers = 1024;
  absl::optional<double> max_in_flight_mb;
  int max_streams = DoorLimits().streams;
  double handshake_timeout = absl::ToDoubleSeconds(DoorLimits().handshake);
  absl::optional<uint32_t> threads;
  bool shared_memory = true;
  double log_step_wait = 5;  // seconds
  std::string listen;
  std::string advertise;
  std::string interface;
  std::string token_file;
  SecurityFlags security;
  std::string trace;  // file; of a worker, too
  bool wait_for_more = false;
  AttachmentHook on_attachments;  // no flag: the program's own
};

// Adds them to `app`, in a group of their own. `flags` outlives the parsing.
void AddServerFlags(CLI::App& app, ServerFlags& flags);

// A server of a launch by mpirun, in which this process is rank 0: with a new job id and token, on
// a private unix socket if all ranks share the node, else on TCP, with new credentials for mutual
// TLS unless the flags choose. `ticket` gets what the others need to know.
absl::StatusOr<std::unique_ptr<Server>> StartLaunchedServer(const ServerFlags& flags,
                                                            const MpiWorld& world,
                                                            JobTicket* ticket);

// What a server that is started by hand with these flags would be, as ConfigJson() tells it; it
// need not be told where to listen.
absl::StatusOr<std::string> DescribeConfig(const ServerFlags& flags);

// A server that was started by hand.
absl::StatusOr<std::unique_ptr<Server>> StartStandaloneServer(const ServerFlags& flags);

}  // namespace sluice

#endif  // SLUICE_SERVER_SERVER_FLAGS_H_
