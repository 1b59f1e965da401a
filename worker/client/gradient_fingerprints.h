// Checks that the parts of a gradient that were sent early have not changed since. A program that
// changes a gradient after it was sent would train with numbers that the server never saw.
//
// RemoteOptimizer takes a fingerprint of each part before it leaves, and compares it in step().
// LibTorch's version counters are not enough: they do not see writes through Tensor::data(), which
// clip_grad_norm_() makes.

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
  // Takes the fingerprint of a part, before it is sent.
  void Note(uint64_t offset, absl::Span<const float> part);

  // The offset of the first noted part whose bits have changed in `gradient`; absent if none has.
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
