// How sluicectl reaches a server: by flags, by the environment, or by a named context.

#ifndef SLUICE_TOOLS_CTL_COMMANDS_CONNECTION_FLAGS_H_
#define SLUICE_TOOLS_CTL_COMMANDS_CONNECTION_FLAGS_H_

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/program/security_flags.h"
#include "tools/ctl/client/operator_client.h"

namespace sluice {

struct ConnectionFlags {
  std::string server;   // address
  std::string context;  // name
  // Whether the command line has --server and --context; else the environment named them.
  bool server_given = false;
  bool context_given = false;
  std::string token_file;
  SecurityFlags security;
  double connect_timeout = 10;  // seconds
  std::string model;            // of a job that has several; empty: the one without a name
};

// Adds the flags to `app`, in a group of their own. `flags` outlives the parsing.
void AddConnectionFlags(CLI::App& app, ConnectionFlags& flags);

// Notes which of --server and --context the command line has.
void NoteGiven(int argc, const char* const* argv, ConnectionFlags& flags);

// The flags with what the context says, if one is used: the one of --context, or the current one if
// no server is named. Other flags that were given count before the context's. INVALID_ARGUMENT if
// both --server and --context were given.
absl::StatusOr<ConnectionFlags> WithContext(ConnectionFlags flags);

// The options that the flags and the context say. INVALID_ARGUMENT names what is wrong or missing;
// other errors are of files that the flags name.
absl::StatusOr<GrpcEndpoint> EndpointFrom(const ConnectionFlags& flags);

// Connects as the flags say.
absl::StatusOr<std::unique_ptr<OperatorClient>> ConnectOperator(const ConnectionFlags& flags);

}  // namespace sluice

#endif  // SLUICE_TOOLS_CTL_COMMANDS_CONNECTION_FLAGS_H_
