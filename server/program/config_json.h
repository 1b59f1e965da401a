// Prints a server's configuration for people and scripts (--print-options).

#ifndef SLUICE_SERVER_PROGRAM_CONFIG_JSON_H_
#define SLUICE_SERVER_PROGRAM_CONFIG_JSON_H_

#include <string>

#include "common/security/credentials_source.h"
#include "server/program/servers_flags.h"
#include "server/server.h"

namespace sluice {

// Returns the JSON of ServerConfig in proto/sluice/v1/config.proto, including fields that have
// their default, and a line feed at the end. It says whether there is a token, but never the token.
// `tls` names the files of the options' credentials, if there are any; `list` names the servers.
std::string ConfigJson(const ServerOptions& options, const TlsFiles& tls, const ServerList& list);

}  // namespace sluice

#endif  // SLUICE_SERVER_PROGRAM_CONFIG_JSON_H_
