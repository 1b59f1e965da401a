#include "worker/connection/grpc/answer.h"

namespace sluice {
namespace {

// A slower transfer would break off and begin anew without end. A server that is gone is noticed by
// the connection's keepalive, long before such a deadline.
constexpr double kSlowestBytesPerSecond = 1e4;

}  // namespace

absl::Duration TransferTimeout(uint64_t elements) {
  return kCallTimeout +
         absl::Seconds(static_cast<double>(elements * sizeof(float)) / kSlowestBytesPerSecond);
}

}  // namespace sluice
