// The command line of a server, wherever it runs: sluice_server, or rank 0 of a program of one's
// own.

#ifndef SLUICE_SERVER_PROGRAM_SERVER_FLAGS_H_
#define SLUICE_SERVER_PROGRAM_SERVER_FLAGS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/encoding/transforms/builtin_transforms.h"
#include "server/program/security_flags.h"
#include "server/program/training_flags.h"
#include "server/server.h"

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
  int max_streams = RpcLimits().streams;
  double handshake_timeout = absl::ToDoubleSeconds(RpcLimits().handshake);
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
  uint32_t max_restarts = 0;                           // under mpirun; see server/program/launch.h
  AttachmentHook on_attachments;                       // no flag: the program's own
  FileSystem* files = &RealFileSystem();               // no flag, either
  TransformRegistry transforms = BuiltinTransforms();  // no flag, either; of a worker, too
};

// Adds them to `app`, in a group of their own. `flags` outlives the parsing.
void AddServerFlags(CLI::App& app, ServerFlags& flags);

// All but where to listen, and what is spoken there; of a new job. `launched_workers` is 0 if
// nobody knows how many there are. The token is empty if no file holds one.
absl::StatusOr<ServerOptions> ServerOptionsFrom(const ServerFlags& flags,
                                                uint32_t launched_workers);

// What a server that is started by hand with these flags would be, as ConfigJson() tells it; it
// need not be told where to listen.
absl::StatusOr<std::string> DescribeConfig(const ServerFlags& flags);

// A server that was started by hand.
absl::StatusOr<std::unique_ptr<Server>> StartStandaloneServer(const ServerFlags& flags);

}  // namespace sluice

#endif  // SLUICE_SERVER_PROGRAM_SERVER_FLAGS_H_
