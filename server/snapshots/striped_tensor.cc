#include "server/snapshots/striped_tensor.h"

namespace sluice {

StripedTensor::StripedTensor(const Layout& layout, const Stripes& stripes, const TensorQuery& query)
    : stripes_(stripes) {
  const LayoutRange& range = layout.ranges()[query.tensor];
  tensor_ = {range.offset, range.end()};
  values_ = {range.offset + query.first, range.offset + query.first + query.count};
}

size_t StripedTensor::UnitsIn(uint32_t stripe) const {
  const Run run = InStripe(stripe, tensor_);
  if (run.size() == 0) return 0;
  return (run.end - 1) / stripes_.unit() - run.begin / stripes_.unit() + 1;
}

size_t StripedTensor::ValuesIn(uint32_t stripe) const { return InStripe(stripe, values_).size(); }

TensorPart StripedTensor::Read(uint32_t stripe, absl::Span<const float> parameters) const {
  TensorPart part;
  part.units.reserve(UnitsIn(stripe));
  const Run tensor = InStripe(stripe, tensor_);
  ForEachUnit(stripes_.unit(), tensor.begin, tensor.end, [&](uint64_t begin, uint64_t end) {
    part.units.push_back(Summarize(parameters.subspan(begin, end - begin)));
  });
  const Run values = InStripe(stripe, values_);
  const absl::Span<const float> asked = parameters.subspan(values.begin, values.size());
  part.values.assign(asked.begin(), asked.end());
  return part;
}

TensorStatistics StripedTensor::Combine(const std::vector<TensorPart>& parts) const {
  CombinedStatistics all;
  std::vector<size_t> next(parts.size());
  ForEachUnit(stripes_.unit(), tensor_.begin, tensor_.end, [&](uint64_t begin, uint64_t end) {
    const uint32_t stripe = stripes_.StripeOf(begin);
    all.Add(parts[stripe].units[next[stripe]++], end - begin);
  });
  return all.Get();
}

std::vector<float> StripedTensor::Join(const std::vector<TensorPart>& parts) const {
  std::vector<float> values;
  std::vector<size_t> next(parts.size());
  ForEachUnit(stripes_.unit(), values_.begin, values_.end, [&](uint64_t begin, uint64_t end) {
    const uint32_t stripe = stripes_.StripeOf(begin);
    const auto from = parts[stripe].values.begin() + static_cast<ptrdiff_t>(next[stripe]);
    values.insert(values.end(), from, from + static_cast<ptrdiff_t>(end - begin));
    next[stripe] += end - begin;
  });
  return values;
}

}  // namespace sluice
