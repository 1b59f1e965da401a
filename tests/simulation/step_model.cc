#include "tests/simulation/step_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace sluice {
namespace {

// Of a discounted sum: the weights are no whole numbers.
constexpr float kRounding = 1e-5f;

bool IsStatistic(const Layout& layout, size_t element) {
  for (const LayoutRange& range : layout.ranges()) {
    if (element >= range.offset && element < range.end()) {
      return range.kind == RangeKind::kStatistic;
    }
  }
  return false;
}

double DecayAt(size_t element, const std::shared_ptr<const RunningMeans>& means) {
  if (means == nullptr) return 0;
  for (const RunningMean& mean : *means) {
    if (element >= mean.begin && element < mean.end) return mean.decay;
  }
  return 0;
}

}  // namespace

void StepModel::Enter(ModelContribution contribution, absl::Time now) {
  if (!since_.has_value()) since_ = now;
  const auto rank = std::make_pair(contribution.index, contribution.worker);
  if (!contribution.skipped && (!lowest_.has_value() || rank <= *lowest_)) {
    lowest_ = rank;
    options_ = contribution.options;
  }
  entered_.push_back(std::move(contribution));
}

uint32_t StepModel::counted() const {
  return static_cast<uint32_t>(std::count_if(
      entered_.begin(), entered_.end(), [](const ModelContribution& c) { return !c.skipped; }));
}

bool StepModel::Has(const std::string& worker) const {
  return std::any_of(entered_.begin(), entered_.end(),
                     [&](const ModelContribution& c) { return c.worker == worker; });
}

bool StepModel::HasProcess(uint64_t process) const {
  return std::any_of(entered_.begin(), entered_.end(),
                     [&](const ModelContribution& c) { return c.process == process; });
}

ModelSessions StepModel::SessionsBehind(const ModelRank& first_missing) const {
  ModelSessions sessions;
  for (const ModelContribution& c : entered_) {
    if (!c.skipped && first_missing < c.rank()) sessions.push_back(c.session);
  }
  return sessions;
}

StepModel::ModelContributions StepModel::InOrder(ReductionOrder order) const {
  ModelContributions gradients;
  for (const ModelContribution& c : entered_) {
    if (!c.skipped) gradients.push_back(&c);
  }
  if (order == ReductionOrder::kRank) {
    std::stable_sort(gradients.begin(), gradients.end(),
                     [](const auto* a, const auto* b) { return a->rank() < b->rank(); });
  }
  return gradients;
}

Values StepModel::Apply(const Consistency& consistency, double learning_rate,
                        const Values& current) {
  Values next = current;
  tolerance_.assign(current.size(), 0);
  const auto gradients = InOrder(consistency.order);
  for (size_t i = 0; i < next.size() && !gradients.empty(); ++i) {
    next[i] = Element(gradients, i, consistency, learning_rate, current[i]);
  }
  entered_.clear();
  since_.reset();
  if (lowest_.has_value()) latest_ = std::exchange(options_, nullptr);
  lowest_.reset();
  return next;
}

float StepModel::Element(const ModelContributions& gradients, size_t element,
                         const Consistency& consistency, double learning_rate, float current) {
  const bool statistic = IsStatistic(layout_, element);
  const bool weighted = consistency.reduction == Reduction::kWeightedMean;
  float sum = 0;
  float magnitude = std::abs(current);
  float samples = 0;
  double decay = 0;
  bool discounted = false;
  for (const ModelContribution* c : gradients) {
    float weight = weighted ? static_cast<float>(c->samples) : 1;
    if (consistency.discount_stale && !statistic && c->staleness > 0) {
      weight /= static_cast<float>(1 + c->staleness);
      discounted = true;
    }
    const float term = weight * c->gradient[element];
    sum = sum + term;
    decay += weight * DecayAt(element, c->means);
    magnitude += std::abs(term);
    samples += static_cast<float>(c->samples);
  }
  float divisor = weighted ? samples : static_cast<float>(gradients.size());
  if (consistency.reduction == Reduction::kSum && !statistic) divisor = 1;
  if (discounted) tolerance_[element] = kRounding * magnitude;
  if (statistic) return sum / divisor + static_cast<float>(decay / divisor) * current;
  return current - static_cast<float>(learning_rate) * (sum / divisor);
}

}  // namespace sluice
