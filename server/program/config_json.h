// A server's configuration, for people and their scripts.

#ifndef SLUICE_SERVER_PROGRAM_CONFIG_JSON_H_
#define SLUICE_SERVER_PROGRAM_CONFIG_JSON_H_

#include <string>

#include "common/security/credentials_source.h"
#include "server/server.h"

namespace sluice {

// JSON of ServerConfig in proto/sluice/v1/config.proto, with the fields that have their default
// too; ends with a line feed. Whether there is a token is told, but not the token. `tls` names the
// files behind the options' credentials, or none.
std::string ConfigJson(const ServerOptions& options, const TlsFiles& tls);

}  // namespace sluice

#endif  // SLUICE_SERVER_PROGRAM_CONFIG_JSON_H_
