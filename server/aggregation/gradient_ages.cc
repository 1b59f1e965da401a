#include "server/aggregation/gradient_ages.h"

#include <algorithm>

namespace sluice {
namespace {

// A history has every step since it began, or it would not tell the age of a gradient.
bool NeedsHistory(const StepTerms& terms) { return terms.gap_aware || terms.ordered_momentum; }

}  // namespace

double GradientAges::Count(uint64_t staleness, const StepTerms& terms) {
  const double gap = terms.gap_aware ? history_.GapSince(staleness) : 1;
  ++count_;
  gap_shares_ += 1 / gap;
  lateness_ += static_cast<double>(history_.DecaysSince(staleness));
  return sgd_ ? gap : 1;
}

void GradientAges::Complete(StepTerms& terms) const {
  const double count = std::max<uint32_t>(count_, 1);
  if (terms.gap_aware && !sgd_) {
    for (double& rate : terms.learning_rates) rate *= gap_shares_ / count;
  }
  if (terms.ordered_momentum) {
    terms.ordered = {since_decay_ >= terms.workers, lateness_ / count};
  }
}

void GradientAges::BeginStep(const StepTerms& terms, const std::vector<float>& sample) {
  if (!NeedsHistory(terms)) history_.Clear();
  if (NeedsHistory(terms) && history_.empty()) history_.Add(sample, decays_);
}

void GradientAges::EndStep(const StepTerms& terms, const std::vector<float>& sample) {
  if (NeedsHistory(terms)) history_.Add(sample, decays_);
}

void GradientAges::NoteMade(const StepTerms& terms, uint32_t gradients) {
  if (!terms.ordered.has_value()) return;
  if (terms.ordered->decays) {
    since_decay_ %= terms.workers;  // a step may have more gradients than were missing
    ++decays_;
  }
  since_decay_ += gradients;
}

void GradientAges::Clear() {
  count_ = 0;
  gap_shares_ = 0;
  lateness_ = 0;
}

}  // namespace sluice
