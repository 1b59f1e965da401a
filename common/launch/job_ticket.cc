#include "common/launch/job_ticket.h"

#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"
#include "common/security/secret.h"
#include "sluice/v1/bootstrap.pb.h"

namespace sluice {
namespace {

template <typename Ranks>
bool AreServerRanks(const Ranks& ranks) {
  return !ranks.empty() && ranks.Get(0) == 0 &&
         std::adjacent_find(ranks.begin(), ranks.end(), std::greater_equal<>()) == ranks.end();
}

}  // namespace

std::string EncodeTicket(const JobTicket& ticket) {
  v1::JobTicket message;
  message.set_address(ticket.address);
  message.set_job_id(ticket.job_id);
  message.set_token(ticket.token);
  message.set_certificate(ticket.credentials.certificate);
  message.set_key(ticket.credentials.key);
  message.set_authority(ticket.credentials.authority);
  for (const uint32_t rank : ticket.server_ranks) message.add_server_ranks(rank);
  std::string bytes = message.SerializeAsString();
  Wipe(*message.mutable_key());
  return bytes;
}

absl::StatusOr<JobTicket> DecodeTicket(absl::string_view bytes) {
  v1::JobTicket message;
  const bool parsed = message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  if (!parsed || message.address().empty() || !AreServerRanks(message.server_ranks())) {
    return absl::DataLossError(absl::StrCat(
        "rank 0 broadcast ", bytes.size(),
        " bytes that are no job ticket; do all ranks run the same version of Sluice?"));
  }
  JobTicket ticket{message.address(), message.job_id(), message.token()};
  ticket.credentials = {message.certificate(), message.key(), message.authority()};
  ticket.server_ranks.assign(message.server_ranks().begin(), message.server_ranks().end());
  Wipe(*message.mutable_key());
  return ticket;
}

}  // namespace sluice
