// A sample of at most kSize parameters, in blocks that are spread evenly over the model, so that
// neither time nor memory grows with the model. It is the same for all steps, so that it cancels
// out of ratios. Statistics are not part of it.
//
// Each stripe of the vector holds some of the blocks. So the stripes read their parts of the
// sample, and Join() makes the sample of them.

#ifndef SLUICE_SERVER_AGGREGATION_PARAMETER_SAMPLE_H_
#define SLUICE_SERVER_AGGREGATION_PARAMETER_SAMPLE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/tensor/layout.h"
#include "common/tensor/stripes.h"

namespace sluice {

// Immutable: any thread may use it.
class ParameterSample {
 public:
  static constexpr uint64_t kSize = 4096;  // parameters

  // `layout` is that of the whole vector, which `stripes` cuts.
  ParameterSample(const Layout& layout, const Stripes& stripes);

  // The size of the part of the sample that lies in that stripe.
  uint64_t SizeIn(uint32_t stripe) const;

  // Returns the part of the sample that lies in that stripe. `parameters` are those of the stripe.
  std::vector<float> Read(uint32_t stripe, absl::Span<const float> parameters) const;

  // Returns the sample, given what Read() returned for each stripe.
  std::vector<float> Join(const std::vector<std::vector<float>>& parts) const;

 private:
  // Its parameters lie in one unit.
  struct Block {
    uint64_t begin = 0;  // in the stripe
    uint64_t size = 0;
    uint32_t stripe = 0;
  };

  std::vector<Block> blocks_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_AGGREGATION_PARAMETER_SAMPLE_H_
