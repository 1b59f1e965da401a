#include "tools/ctl/commands/connection_flags.h"

#include <utility>

#include "absl/time/time.h"
#include "common/base/command_line.h"
#include "common/net/address.h"
#include "common/security/secret_file.h"

namespace sluice {

void AddConnectionFlags(CLI::App& app, ConnectionFlags& flags) {
  CLI::App& group = *app.add_option_group("Server", "How this program reaches a server");
  group.add_option("--server", flags.server,
                   "address of a running server: host:port or unix:/path");
  group
      .add_option("--connect-timeout", flags.connect_timeout,
                  "seconds to wait for a server that cannot be reached")
      ->check(SecondsFrom(0))
      ->capture_default_str();
  group.add_option("--token-file", flags.token_file,
                   "file whose first line is the secret that the server asks for");
  AddSecurityFlags(group, flags.security);
}

absl::StatusOr<OperatorOptions> OperatorOptionsFrom(const ConnectionFlags& flags) {
  if (flags.server.empty()) {
    return absl::InvalidArgumentError(
        "found no address of a server, expected one: give --server=host:port or "
        "--server=unix:/path");
  }
  const auto address = ParseAddress(flags.server);
  if (!address.ok()) return absl::InvalidArgumentError(address.status().message());
  auto credentials = CredentialsAt(flags.security, *address);
  if (!credentials.ok()) return credentials.status();
  OperatorOptions options;
  options.address = flags.server;
  options.credentials = *std::move(credentials);
  options.connect_timeout = absl::Seconds(flags.connect_timeout);
  if (flags.token_file.empty()) return options;
  auto token = ReadSecretFile(flags.token_file);
  if (!token.ok()) return token.status();
  options.token = *std::move(token);
  return options;
}

absl::StatusOr<std::unique_ptr<OperatorClient>> ConnectOperator(const ConnectionFlags& flags) {
  const auto options = OperatorOptionsFrom(flags);
  if (!options.ok()) return options.status();
  return OperatorClient::Connect(*options);
}

}  // namespace sluice
