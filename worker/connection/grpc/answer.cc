#include "worker/connection/grpc/answer.h"

namespace sluice {
namespace {

constexpr double kSlowestBytesPerSecond = 1e6;

}  // namespace

absl::Duration TransferTimeout(uint64_t elements) {
  return kCallTimeout +
         absl::Seconds(static_cast<double>(elements * sizeof(float)) / kSlowestBytesPerSecond);
}

}  // namespace sluice
