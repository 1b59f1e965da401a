#include "worker/connection/grpc/dial.h"

#include <glog/logging.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"

namespace sluice {
namespace {

constexpr absl::Duration kQuietWait = absl::Seconds(1);  // a longer wait is logged
constexpr absl::Duration kLook = absl::Seconds(5);       // then; a handshake takes less

// What else to say if no server answers.
std::string WhyNobody(const GrpcConnectionOptions& options) {
  if (options.launched) {
    return "it ran when this process was launched, so it has ended since: its log says why; a "
           "worker that comes much later than the others may find the job done";
  }
  return absl::StrCat(
      "is it running, is the address right, and do both sides ",
      options.credentials == nullptr ? "speak plaintext?" : "trust each other's certificates?");
}

}  // namespace

absl::StatusOr<GrpcChannel> DialChannel(const GrpcConnectionOptions& options) {
  GrpcChannel channel(options.address, options.credentials,
                      options.own_connection ? Connection::kOfItsOwn : Connection::kShared);
  const absl::Duration first = std::min(kQuietWait, options.connect_timeout);
  absl::Status connected = channel.Connect(first);
  absl::Duration rest = options.connect_timeout - first;
  const absl::Duration look = options.check ? kLook : rest;
  for (; absl::IsUnavailable(connected) && rest > absl::ZeroDuration(); rest -= look) {
    const absl::Status expected = options.check ? options.check() : absl::OkStatus();
    if (!expected.ok()) return expected;
    LOG_IF(INFO, rest == options.connect_timeout - first)
        << "waiting up to " << absl::FormatDuration(options.connect_timeout) << " for a server at "
        << options.address << ": " << connected.message();
    connected = channel.Connect(std::min(rest, look));
  }
  if (!connected.ok() && !absl::IsUnavailable(connected)) return connected;
  if (!connected.ok()) {
    return absl::UnavailableError(absl::StrCat("no server at ", options.address, " within ",
                                               absl::FormatDuration(options.connect_timeout), ": ",
                                               connected.message(), "; ", WhyNobody(options)));
  }
  return channel;
}

}  // namespace sluice
