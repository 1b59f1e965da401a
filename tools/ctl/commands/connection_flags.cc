#include "tools/ctl/commands/connection_flags.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/command_line.h"
#include "common/base/error.h"
#include "common/net/address.h"
#include "common/protocol/model_name.h"
#include "common/security/secret_file.h"
#include "tools/ctl/commands/contexts.h"

namespace sluice {
namespace {

// Takes what the context says, except where the flags say something.
void Fill(const Context& context, ConnectionFlags& flags) {
  const auto fill = [](const std::string& from, std::string& to) {
    if (to.empty()) to = from;
  };
  flags.server = context.server;
  fill(context.token_file, flags.token_file);
  fill(context.tls_cert, flags.security.tls.certificate);
  fill(context.tls_key, flags.security.tls.key);
  fill(context.tls_ca, flags.security.tls.authority);
  flags.security.insecure_on_network |= context.insecure_on_network;
}

}  // namespace

void AddConnectionFlags(CLI::App& app, ConnectionFlags& flags) {
  CLI::App& group = *app.add_option_group("Server", "How this program reaches a server");
  group.add_option("--server", flags.server,
                   "address of a running server: host:port or unix:/path");
  group.add_option("--context", flags.context,
                   "a server that context add has named, with its credentials (default: the one "
                   "that context use chose, if no server is named)");
  group
      .add_option("--connect-timeout", flags.connect_timeout,
                  "seconds to wait for a server that cannot be reached")
      ->check(SecondsFrom(0))
      ->capture_default_str();
  group.add_option("--model-name", flags.model,
                   "name of the model to look at or change, in a job that has several (default: "
                   "the one without a name)");
  group.add_option("--token-file", flags.token_file,
                   "file whose first line is the secret that the server asks for");
  AddSecurityFlags(group, flags.security);
}

void NoteGiven(int argc, const char* const* argv, ConnectionFlags& flags) {
  for (int i = 1; i < argc && absl::string_view(argv[i]) != "--"; ++i) {
    const absl::string_view word = argv[i];
    const absl::string_view flag = word.substr(0, word.find('='));
    flags.server_given |= flag == "--server";
    flags.context_given |= flag == "--context";
  }
}

absl::StatusOr<ConnectionFlags> WithContext(ConnectionFlags flags) {
  const bool server = !flags.server.empty();
  const bool context = !flags.context.empty();
  if (server && context && flags.server_given == flags.context_given) {
    return absl::InvalidArgumentError(absl::StrCat("--server is ", Shown(flags.server),
                                                   " and --context is ", Shown(flags.context),
                                                   ", expected one of them; leave one out"));
  }
  if (server && !flags.context_given) return flags;
  const auto path = ContextsPath();
  if (!path.ok()) return context ? path.status() : absl::StatusOr<ConnectionFlags>(flags);
  const auto contexts = ReadContexts(*path);
  if (!contexts.ok()) return contexts.status();
  const std::string& name = context ? flags.context : contexts->current;
  if (name.empty()) return flags;
  const auto chosen = contexts->Find(name);
  if (!chosen.ok()) return chosen.status();
  Fill(*chosen, flags);
  return flags;
}

absl::StatusOr<GrpcEndpoint> EndpointFrom(const ConnectionFlags& given) {
  const auto chosen = WithContext(given);
  if (!chosen.ok()) return chosen.status();
  const ConnectionFlags& flags = *chosen;
  if (flags.server.empty()) {
    return absl::InvalidArgumentError(
        "found no address of a server, expected one: give --server=host:port or "
        "--server=unix:/path, or choose one with context use");
  }
  const auto address = ParseAddress(flags.server);
  if (!address.ok()) return absl::InvalidArgumentError(address.status().message());
  const absl::Status named = flags.model.empty() ? absl::OkStatus() : CheckModelName(flags.model);
  if (!named.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--model-name: ", named.message()));
  }
  auto credentials = CredentialsAt(flags.security, *address);
  if (!credentials.ok()) return credentials.status();
  GrpcEndpoint options;
  options.address = flags.server;
  options.credentials = *std::move(credentials);
  options.connect_timeout = absl::Seconds(flags.connect_timeout);
  options.model = flags.model;
  if (flags.token_file.empty()) return options;
  auto token = ReadSecretFile(flags.token_file);
  if (!token.ok()) return token.status();
  options.token = *std::move(token);
  return options;
}

absl::StatusOr<std::unique_ptr<OperatorClient>> ConnectOperator(const ConnectionFlags& flags) {
  const auto options = EndpointFrom(flags);
  if (!options.ok()) return options.status();
  return OperatorClient::Connect(*options);
}

}  // namespace sluice
