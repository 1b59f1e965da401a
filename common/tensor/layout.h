// Describes a model as one flat vector of float32: which range of the vector belongs to which
// tensor. A model may also have tables of rows (table_spec.h) and constants (constant_tensor.h),
// which are not in the vector. Workers send the layout when they join; checkpoints store it.

#ifndef SLUICE_COMMON_TENSOR_LAYOUT_H_
#define SLUICE_COMMON_TENSOR_LAYOUT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/tensor/constant_tensor.h"
#include "common/tensor/stripes.h"
#include "common/tensor/table_spec.h"

namespace sluice {

// What happens to a range when a step is applied.
enum class RangeKind {
  kParameter,  // the optimizer applies the reduced gradient
  kStatistic,  // workers push values; the new value is their mean
};

// The element type of the tensor in the worker's model; in the vector all elements are float32.
// Integers are counts, of statistics only.
enum class DataType { kFloat32, kFloat64, kFloat16, kBFloat16, kInt64 };

// One tensor's place in the vector. Offsets and lengths count elements.
struct LayoutRange {
  std::string name;
  std::vector<uint32_t> shape;  // empty for a scalar
  RangeKind kind = RangeKind::kParameter;
  DataType dtype = DataType::kFloat32;
  uint64_t offset = 0;
  uint64_t length = 0;

  uint64_t end() const { return offset + length; }
};

bool operator==(const LayoutRange& a, const LayoutRange& b);

// Neighbouring ranges of one kind, joined: elements [begin, end).
struct KindRun {
  RangeKind kind = RangeKind::kParameter;
  uint64_t begin = 0;
  uint64_t end = 0;
};

// Splits the elements [begin, end) at the ends of `runs`, and calls act(run, begin, end) for each
// part. `runs` cover the vector in ascending order; each has a member `end`.
template <typename Run, typename Act>
void ForEachPart(const std::vector<Run>& runs, uint64_t begin, uint64_t end, Act act) {
  auto run = std::upper_bound(runs.begin(), runs.end(), begin,
                              [](uint64_t offset, const Run& r) { return offset < r.end; });
  for (; begin < end; ++run) {
    const uint64_t part_end = std::min(end, run->end);
    act(*run, begin, part_end);
    begin = part_end;
  }
}

// The same for runs of a layout, with act(kind, begin, end).
template <typename Act>
void ForEachRun(const std::vector<KindRun>& runs, uint64_t begin, uint64_t end, Act act) {
  ForEachPart(runs, begin, end,
              [&act](const KindRun& run, uint64_t from, uint64_t to) { act(run.kind, from, to); });
}

// A valid layout: its ranges are in ascending order and cover [0, size()) without gaps, ranges and
// tables have unique names, and so have constants. It is immutable, so any thread may read it, and
// copies share what they hold.
class Layout {
 public:
  static constexpr size_t kMaxRanges = 1'000'000;
  static constexpr size_t kMaxNameBytes = 256;
  static constexpr size_t kMaxDimensions = 8;
  static constexpr uint64_t kMaxElements = uint64_t{1} << 38;  // 1 TiB of float32
  static constexpr size_t kMaxConstants = 1'000'000;
  static constexpr uint64_t kMaxConstantBytes = uint64_t{1} << 40;

  // A layout without tensors.
  Layout() = default;

  // Checks what may come from a peer. BAD_LAYOUT names the range, table or constant, and the rule
  // that it breaks. Names that checkpoints use for their own tensors are refused.
  static absl::StatusOr<Layout> Create(std::vector<LayoutRange> ranges,
                                       std::vector<TableSpec> tables = {},
                                       std::vector<ConstantTensor> constants = {});

  // The layout of a stripe of this vector; a copy of this one if there is one stripe. It has one
  // range for each tensor that has elements there, with the tensor's name and kind and the shape
  // [length], all tables, and no constants: the first server has them. No tensor has 2³² elements
  // in one of several stripes.
  Layout OfStripe(const Stripes& stripes, uint32_t stripe) const;

  const std::vector<LayoutRange>& ranges() const;
  const std::vector<TableSpec>& tables() const;
  const std::vector<ConstantTensor>& constants() const;
  uint64_t size() const { return ranges().empty() ? 0 : ranges().back().end(); }

  // The ranges, with neighbours of one kind joined.
  std::vector<KindRun> Runs() const;

  // The range of that name, or null.
  const LayoutRange* Find(absl::string_view name) const;

  // "conv1.weight[17]" for the element at `offset`, which must be inside the vector. In the layout
  // of a stripe, it is the name in the whole vector.
  std::string ElementName(uint64_t offset) const;

  // The stripe that this describes; null if it describes a whole vector.
  const Stripe* stripe() const;
  // The whole tensor of which `range`, one of this layout's, has a part.
  const LayoutRange& WholeOf(const LayoutRange& range) const;

 private:
  struct Parts {
    std::vector<LayoutRange> ranges;
    absl::flat_hash_map<absl::string_view, size_t> by_name;  // of the names in `ranges`
    std::vector<TableSpec> tables;
    std::vector<ConstantTensor> constants;
  };

  // The vector of which this is a stripe.
  struct Whole;

  std::shared_ptr<const Parts> parts_;  // null without tensors
  std::shared_ptr<const Whole> whole_;  // null if this is not the layout of a stripe
};

// OK if a worker's layout equals the job's, at once if one is a copy of the other. Otherwise
// LAYOUT_MISMATCH, which names the first range that differs, and both shapes, or the first table or
// constant that does.
absl::Status CheckSameLayout(const Layout& job, const Layout& worker);

// "[64, 3, 3, 3]".
std::string ShapeString(const std::vector<uint32_t>& shape);

absl::string_view RangeKindName(RangeKind kind);
absl::string_view DataTypeName(DataType dtype);

}  // namespace sluice

#endif  // SLUICE_COMMON_TENSOR_LAYOUT_H_
