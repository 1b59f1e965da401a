// One tensor of a vector that is cut into stripes: what each stripe tells of it, and what that
// makes together. With one server the vector is a single stripe.

#ifndef SLUICE_SERVER_SNAPSHOTS_STRIPED_TENSOR_H_
#define SLUICE_SERVER_SNAPSHOTS_STRIPED_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/tensor/layout.h"
#include "common/tensor/stripes.h"
#include "server/snapshots/tensor_statistics.h"

namespace sluice {

// Which tensor, and which of its values.
struct TensorQuery {
  static constexpr uint64_t kMostValues = 1024;

  uint32_t tensor = 0;  // the index of its range in the layout
  uint64_t first = 0;   // the index, in the flattened tensor, of the first value
  uint64_t count = 0;   // of the values; `first` + `count` is at most the tensor's length
};

// What a stripe tells.
struct TensorPart {
  std::vector<UnitStatistics> units;  // of the tensor's elements in each unit, in order
  std::vector<float> values;          // those of the query that lie in the stripe, in order
};

// Immutable: any thread may use it.
class StripedTensor {
 public:
  // `layout` is that of the whole vector, which `stripes` cuts. The query fits it.
  StripedTensor(const Layout& layout, const Stripes& stripes, const TensorQuery& query);

  uint64_t elements() const { return tensor_.size(); }

  // How long the lists of a stripe's part are.
  size_t UnitsIn(uint32_t stripe) const;
  size_t ValuesIn(uint32_t stripe) const;

  // Reads the part of a stripe once. `parameters` are those of the stripe.
  TensorPart Read(uint32_t stripe, absl::Span<const float> parameters) const;

  // `parts` has the part of each stripe.
  TensorStatistics Combine(const std::vector<TensorPart>& parts) const;
  std::vector<float> Join(const std::vector<TensorPart>& parts) const;

 private:
  struct Run {  // of the vector, or of a stripe
    uint64_t begin = 0;
    uint64_t end = 0;

    uint64_t size() const { return end - begin; }
  };

  Run InStripe(uint32_t stripe, const Run& run) const {
    return {stripes_.Before(stripe, run.begin), stripes_.Before(stripe, run.end)};
  }

  const Stripes stripes_;
  Run tensor_;
  Run values_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SNAPSHOTS_STRIPED_TENSOR_H_
