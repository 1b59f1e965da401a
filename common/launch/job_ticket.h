// What every process of a job must know to take part: the blob that rank 0 broadcasts.

#ifndef SLUICE_COMMON_LAUNCH_JOB_TICKET_H_
#define SLUICE_COMMON_LAUNCH_JOB_TICKET_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/security/certificates.h"

namespace sluice {

struct JobTicket {
  std::string address;  // gRPC target of the server
  std::string job_id;   // empty: whichever job the server runs
  std::string token;    // secret; empty if the server asks for none
  // Of its workers, for mutual TLS; secret. Empty if the server speaks plaintext, or if all bring
  // their own.
  Credentials credentials = {};
};

// The ticket, which holds secrets, or the reason why rank 0 has none, as bytes to broadcast; and
// back, where a failure comes out as UNAVAILABLE with its reason, and foreign bytes as DATA_LOSS.
std::string EncodeTicket(const absl::StatusOr<JobTicket>& ticket);
absl::StatusOr<JobTicket> DecodeTicket(absl::string_view bytes);

}  // namespace sluice

#endif  // SLUICE_COMMON_LAUNCH_JOB_TICKET_H_
