// Checks of a running server: whether it can be reached, what it refuses, its version, its clock.

#ifndef SLUICE_TOOLS_DOCTOR_SERVER_CHECKS_H_
#define SLUICE_TOOLS_DOCTOR_SERVER_CHECKS_H_

#include <string>

#include "absl/time/time.h"
#include "common/wire/versions.h"
#include "server/program/security_flags.h"
#include "tools/doctor/finding.h"
#include "worker/connection/grpc/probe.h"

namespace sluice {

struct NamedServer {
  std::string address;  // "host:port" or "unix:/path"
  SecurityFlags security;
  std::string token_file;  // empty: the server asks for no token
};

// Asks the server as a worker would, and changes nothing of its job. Takes 5 s at most to connect.
// Sends the token through a network only over TLS, or with --insecure-on-network.
Findings CheckServer(const NamedServer& server);

// Whether the server's version and revision of the protocol fit those of this machine's programs,
// and which side is the older one.
Finding JudgeVersion(const ProbedServer& server, const Revisions& own, absl::string_view version);

// `ahead`: the server's clock minus this machine's; `doubt`: the largest error of that.
Finding JudgeClock(absl::Duration ahead, absl::Duration doubt);

}  // namespace sluice

#endif  // SLUICE_TOOLS_DOCTOR_SERVER_CHECKS_H_
