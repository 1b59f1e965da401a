// A sample of at most kSize parameters, in blocks that are spread evenly over the model, so that
// neither time nor memory grows with the model. It is the same for all steps, so that it cancels
// out of ratios. Statistics are not part of it.

#ifndef SLUICE_SERVER_AGGREGATION_PARAMETER_SAMPLE_H_
#define SLUICE_SERVER_AGGREGATION_PARAMETER_SAMPLE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/tensor/layout.h"

namespace sluice {

// Immutable: any thread may use it.
class ParameterSample {
 public:
  static constexpr uint64_t kSize = 4096;  // parameters

  explicit ParameterSample(const Layout& layout);

  // Replaces `values` by the sample of `parameters`, which have the layout's size.
  void Read(absl::Span<const float> parameters, std::vector<float>* values) const;

  // The Euclidean norm of the sample.
  double Norm(absl::Span<const float> parameters) const;

 private:
  struct Block {
    uint64_t begin = 0;
    uint64_t size = 0;
  };

  std::vector<Block> blocks_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_AGGREGATION_PARAMETER_SAMPLE_H_
