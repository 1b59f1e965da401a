// What a supervised program is told about its launch, since its supervisor spoke to MPI for it.

#ifndef SLUICE_COMMON_LAUNCH_LAUNCH_BRIEF_H_
#define SLUICE_COMMON_LAUNCH_LAUNCH_BRIEF_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "common/launch/job_ticket.h"
#include "common/launch/mpi_bootstrap.h"
#include "common/security/certificates.h"

namespace sluice {

// By what the others know the server of a launch, whichever process serves.
struct ServerIdentity {
  JobTicket ticket;  // what workers need; they know no more
  std::string listen = {};
  // For mutual TLS, made for this launch; secret. Empty: plaintext, or from files.
  Credentials credentials = {};
};

struct LaunchBrief {
  MpiWorld world;
  std::string directory = {};                  // private; for the socket of rank 0
  absl::optional<ServerIdentity> server = {};  // absent: to be chosen, or named by a flag
};

// The brief, which holds secrets, and back. DATA_LOSS for foreign bytes.
std::string EncodeBrief(const LaunchBrief& brief);
absl::StatusOr<LaunchBrief> DecodeBrief(absl::string_view bytes);

// Who a program serves as, or why it does not, for its supervisor; and back, where a failure comes
// out as UNAVAILABLE with its reason.
std::string EncodeIdentity(const absl::StatusOr<ServerIdentity>& server);
absl::StatusOr<ServerIdentity> DecodeIdentity(absl::string_view bytes);

}  // namespace sluice

#endif  // SLUICE_COMMON_LAUNCH_LAUNCH_BRIEF_H_
