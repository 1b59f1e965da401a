// The message in which a supervisor describes the launch to its program. The supervisor uses MPI,
// the program does not; see supervisor.h.

#ifndef SLUICE_COMMON_LAUNCH_LAUNCH_BRIEF_H_
#define SLUICE_COMMON_LAUNCH_LAUNCH_BRIEF_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "common/launch/job_ticket.h"
#include "common/launch/mpi_bootstrap.h"
#include "common/security/certificates.h"

namespace sluice {

// The data with which a restarted server is the same server for its workers.
struct ServerIdentity {
  JobTicket ticket;  // what workers know about the server
  std::string listen = {};
  // The server's credentials for mutual TLS, made for this launch; secret. Empty if the server uses
  // plaintext, or reads credentials from files.
  Credentials credentials = {};
};

struct LaunchBrief {
  MpiWorld world;
  std::string directory = {};                  // private, for a server's unix socket
  absl::optional<ServerIdentity> server = {};  // absent: none yet, or a flag names it
  std::vector<std::string> notes = {};         // for rank 0: of each rank, from EncodeNote()
};

// Encodes a brief, which holds secrets, and decodes it. DATA_LOSS for other bytes.
std::string EncodeBrief(const LaunchBrief& brief);
absl::StatusOr<LaunchBrief> DecodeBrief(absl::string_view bytes);

// Encodes the identity that a program serves with, or the error because of which it does not serve,
// for its supervisor. Decoding such an error gives UNAVAILABLE with its message.
std::string EncodeIdentity(const absl::StatusOr<ServerIdentity>& server);
absl::StatusOr<ServerIdentity> DecodeIdentity(absl::string_view bytes);

}  // namespace sluice

#endif  // SLUICE_COMMON_LAUNCH_LAUNCH_BRIEF_H_
