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

// The flags of a command line that is right.
ServerFlags ParseServerFlags(std::vector<std::string> arguments);

MpiWorld RanksOnOneNode(int size);
MpiWorld RanksOnManyNodes(int size);

// The server of a launch with that command line.
absl::StatusOr<LaunchedServer> Launch(const std::vector<std::string>& arguments,
                                      const MpiWorld& world);

// What a server tells the worker "a" that has that ticket.
absl::StatusOr<Welcome> JoinWith(const JobTicket& ticket,
                                 absl::Duration timeout = absl::Seconds(30));

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_SERVER_SERVER_FLAGS_H_
