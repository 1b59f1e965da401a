// What processes and files of a job are called by: addresses, the ticket that rank 0 broadcasts,
// and names of files. What is read of them is printed, and read again, as the same.
#include <glog/logging.h>

#include <string>
#include <tuple>

#include "common/checkpoint/numbered_name.h"
#include "common/launch/job_ticket.h"
#include "common/net/address.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/refusal.h"
#include "tests/fuzz/target.h"

namespace sluice {
namespace {

void TryAddress(absl::string_view text) {
  const auto address = ParseAddress(text);
  if (!address.ok()) return CheckRefusal(address.status(), {Reason::kBadArgument});
  CHECK(address->is_unix() == address->host.empty());
  const auto again = ParseAddress(address->ToString());
  CHECK(again.ok()) << again.status();
  CHECK(again->host == address->host && again->port == address->port);
  CHECK(again->unix_path == address->unix_path);
  CHECK(again->IsLocal() == address->IsLocal());
}

auto FieldsOf(const JobTicket& ticket) {
  return std::tie(ticket.address, ticket.job_id, ticket.token, ticket.credentials.certificate,
                  ticket.credentials.key, ticket.credentials.authority);
}

void TryTicket(absl::string_view bytes) {
  const auto ticket = DecodeTicket(bytes);
  if (!ticket.ok()) return CheckRefusal(ticket.status(), {absl::StatusCode::kDataLoss});
  const auto again = DecodeTicket(EncodeTicket(*ticket));
  CHECK(again.ok()) << again.status();
  CHECK(FieldsOf(*again) == FieldsOf(*ticket));
}

// A file that is found by its name is looked for under the name that its numbers have.
void TryName(absl::string_view name) {
  const auto numbers = ParseNumberedName("checkpoint-", name, ".safetensors");
  if (!numbers.has_value()) return;
  CHECK(NumberedName("checkpoint-", *numbers, ".safetensors") == name) << name;
}

}  // namespace

void Try(absl::string_view bytes) {
  Input input(bytes);
  const uint8_t which = input.Byte();
  const absl::string_view text = input.Rest();
  if (which % 3 == 0) return TryAddress(text);
  if (which % 3 == 1) return TryTicket(text);
  TryName(text);
}

}  // namespace sluice
