// Starts servers in this process from flags, and connects a worker to them.

#ifndef SLUICE_TESTS_TESTING_SERVER_SERVER_FLAGS_H_
#define SLUICE_TESTS_TESTING_SERVER_SERVER_FLAGS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/launch/job_ticket.h"
#include "common/launch/mpi_bootstrap.h"
#include "common/protocol/protocol_types.h"
#include "server/program/launched_server.h"
#include "server/program/server_flags.h"

namespace sluice {

// Parses a command line, which must be valid.
ServerFlags ParseServerFlags(std::vector<std::string> arguments);

MpiWorld RanksOnOneNode(int size);
MpiWorld RanksOnManyNodes(int size);

// Launches the server as rank 0 of `world` does with this command line.
absl::StatusOr<LaunchedServer> Launch(const std::vector<std::string>& arguments,
                                      const MpiWorld& world);

// Joins the server of `ticket` as worker "a", and returns the server's answer.
absl::StatusOr<Welcome> JoinWith(const JobTicket& ticket,
                                 absl::Duration timeout = absl::Seconds(30));

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_SERVER_SERVER_FLAGS_H_
