// The file of contexts: named servers, and where the credentials for each lie.
//
//   {"current": "gpu", "contexts": {"gpu": {"server": "node7:7070", "token_file":
//   "/home/a/token"}}}
//
// It holds paths and no secrets. Only its owner may write it, because whoever can name another
// server there gets the owner's token sent.

#ifndef SLUICE_TOOLS_CTL_COMMANDS_CONTEXTS_H_
#define SLUICE_TOOLS_CTL_COMMANDS_CONTEXTS_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace sluice {

// One server. An empty field is not set.
struct Context {
  std::string server;      // address
  std::string token_file;  // this and the next three are absolute paths
  std::string tls_cert;
  std::string tls_key;
  std::string tls_ca;
  bool insecure_on_network = false;
};

struct Contexts {
  std::string current;  // a name in `all`; empty: none
  std::map<std::string, Context> all;

  // INVALID_ARGUMENT names the contexts that there are.
  absl::StatusOr<Context> Find(const std::string& name) const;
};

// $SLUICE_CONTEXTS, or sluice/contexts.json in $XDG_CONFIG_HOME or ~/.config. INVALID_ARGUMENT if
// the environment names none of these.
absl::StatusOr<std::string> ContextsPath();

// No contexts if there is no such file. FAILED_PRECONDITION names the file and says what is wrong
// with it, for example that others may write it.
absl::StatusOr<Contexts> ReadContexts(const std::string& path);

// Replaces the file, with mode 0600, or leaves it as it was. Makes its folder, with mode 0700.
absl::Status WriteContexts(const std::string& path, const Contexts& contexts);

// The contexts as one line of JSON, without a line end.
std::string ContextsJson(const Contexts& contexts);

// INVALID_ARGUMENT unless `name` has 1 to 64 letters, digits, dots, dashes and underscores.
absl::Status CheckContextName(const std::string& name);

}  // namespace sluice

#endif  // SLUICE_TOOLS_CTL_COMMANDS_CONTEXTS_H_
