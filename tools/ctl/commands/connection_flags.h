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
  std::string server;  // address
  std::string token_file;
  SecurityFlags security;
  double connect_timeout = 10;  // seconds
};

// Adds the flags to `app`, in a group of their own. `flags` outlives the parsing.
void AddConnectionFlags(CLI::App& app, ConnectionFlags& flags);

// The options that the flags say. INVALID_ARGUMENT names what is wrong or missing; other errors are
// of files that the flags name.
absl::StatusOr<OperatorOptions> OperatorOptionsFrom(const ConnectionFlags& flags);

// Connects as the flags say.
absl::StatusOr<std::unique_ptr<OperatorClient>> ConnectOperator(const ConnectionFlags& flags);

}  // namespace sluice

#endif  // SLUICE_TOOLS_CTL_COMMANDS_CONNECTION_FLAGS_H_
