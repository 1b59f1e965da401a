// What of a gradient has left before it was complete, and whether that is still what it was:
// whoever changes it afterwards would train with numbers that the server never saw.
//
// Not LibTorch's version counters: writes through Tensor::data(), as clip_grad_norm_() makes them,
// pass those by. A fingerprint is taken of each part, once before it leaves and once at the end.

#ifndef SLUICE_WORKER_CLIENT_GRADIENT_FINGERPRINTS_H_
#define SLUICE_WORKER_CLIENT_GRADIENT_FINGERPRINTS_H_

#include <cstdint>
#include <vector>

#include "absl/types/optional.h"
#include "absl/types/span.h"

namespace sluice {

// Externally synchronized.
class GradientFingerprints {
 public:
  // To be called before the part leaves.
  void Note(uint64_t offset, absl::Span<const float> part);

  // Where the first part begins whose bits in `gradient` are not those that were noted.
  absl::optional<uint64_t> FirstChanged(absl::Span<const float> gradient) const;

  void Clear() { parts_.clear(); }

 private:
  struct Part {
    uint64_t offset = 0;
    uint64_t size = 0;
    uint64_t fingerprint = 0;
  };

  std::vector<Part> parts_;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CLIENT_GRADIENT_FINGERPRINTS_H_
