// The data that every process needs to take part in a job. Rank 0 makes it, and MPI broadcasts it.

#ifndef SLUICE_COMMON_LAUNCH_JOB_TICKET_H_
#define SLUICE_COMMON_LAUNCH_JOB_TICKET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/security/certificates.h"

namespace sluice {

struct JobTicket {
  std::string address;  // gRPC target of the first server
  std::string job_id;   // empty: whichever job the server runs
  std::string token;    // secret; empty if the server has none
  // The workers' credentials for mutual TLS; secret. Empty if the server uses plaintext, or if
  // workers bring their own.
  Credentials credentials = {};
  // The ranks of the launch that serve, by the servers' indices, rising. The first one is 0.
  std::vector<uint32_t> server_ranks = {0};
};

// Encodes a ticket, which holds secrets, and decodes it. DATA_LOSS for other bytes.
std::string EncodeTicket(const JobTicket& ticket);
absl::StatusOr<JobTicket> DecodeTicket(absl::string_view bytes);

}  // namespace sluice

#endif  // SLUICE_COMMON_LAUNCH_JOB_TICKET_H_
