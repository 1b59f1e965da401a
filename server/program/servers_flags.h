// The flags of a job with several servers. Under mpirun --servers is their number; without mpirun
// it lists their addresses, and --index says which of them this one is.

#ifndef SLUICE_SERVER_PROGRAM_SERVERS_FLAGS_H_
#define SLUICE_SERVER_PROGRAM_SERVERS_FLAGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/net/address.h"

namespace CLI {
class App;
}

namespace sluice {

struct ServerOptions;

// The flags as the user gave them.
struct ServersFlags {
  std::string servers = "1";
  absl::optional<uint32_t> index;
  absl::optional<double> lease;  // seconds
};

// The servers of a job that are started by hand. A value.
struct ServerList {
  std::vector<Address> addresses;  // in the order of their indices; empty: there is one server
  uint32_t index = 0;              // of this one

  uint32_t size() const { return addresses.empty() ? 1 : static_cast<uint32_t>(addresses.size()); }
};

// Declares the flags in `group`. `flags` must outlive the parsing.
void AddServersFlags(CLI::App& group, ServersFlags& flags);

// How long another server may be away. `options` has the workers' lease and the directory.
absl::Duration ServerLease(const ServersFlags& flags, const ServerOptions& options);

// How many servers a launch by mpirun has. INVALID_ARGUMENT if --servers is no number from 1 to
// 256, or if --index is given.
absl::StatusOr<uint32_t> LaunchedServers(const ServersFlags& flags);

// The servers that are started by hand. `listen` is --listen. INVALID_ARGUMENT says what is wrong
// with the flags.
absl::StatusOr<ServerList> ListedServers(const ServersFlags& flags, const std::string& listen);

}  // namespace sluice

#endif  // SLUICE_SERVER_PROGRAM_SERVERS_FLAGS_H_
