#include "server/aggregation/step_executor.h"

namespace sluice {

StepExecutor::StepExecutor(const Layout& layout, const OptimizerConfig& optimizer,
                           Parallel& parallel)
    : director_(layout, optimizer, Stripes(layout.size(), 1)),
      stripe_(layout, optimizer, Stripes(layout.size(), 1), 0, parallel) {}

void StepExecutor::Add(const Contribution& contribution, const StepTerms& terms) {
  stripe_.Add(Weighed(contribution, terms));
}

void StepExecutor::Load(uint32_t gradients, uint64_t samples, absl::Span<const float> sum) {
  director_.Load(gradients, samples);
  if (gradients > 0) stripe_.Load(sum);
}

absl::optional<uint64_t> StepExecutor::Make(const StepTerms& terms, const Contribution* last,
                                            const StepVectors& vectors) {
  if (vectors.checksum != nullptr) *vectors.checksum = 0;
  if (last != nullptr) stripe_.Keep(Weighed(*last, terms));
  absl::optional<StepOrder> order = director_.Begin(terms);
  while (order.has_value()) order = director_.Next({stripe_.Carry(*order, vectors)});
  return director_.bad();
}

void StepExecutor::Clear() {
  director_.Clear();
  stripe_.Clear();
}

void StepExecutor::set_optimizer_steps(uint64_t steps) {
  stripe_.set_optimizer_steps(steps);
  if (steps > 0) director_.NoteRestored();
}

Addend StepExecutor::Weighed(const Contribution& contribution, const StepTerms& terms) {
  const PendingPush& push = *contribution.push;
  return {&push.gradient(), director_.Count(push.header().samples, contribution.staleness, terms)};
}

}  // namespace sluice
