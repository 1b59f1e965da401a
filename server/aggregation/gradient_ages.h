// Decides what the rules for stale gradients make of the ages of a step's gradients: how much each
// gradient weighs, and the learning rate and the momentum of the step.
//
// It measures ages by how far the parameters have moved, and how often momentum has decayed, since
// a gradient was computed. It keeps both for the steps that it is told of (ParameterHistory), and
// nothing while no rule needs them. server/policy/STALENESS.md has the rules and their papers.
//
// StepDirector owns one. Nothing here fails.

#ifndef SLUICE_SERVER_AGGREGATION_GRADIENT_AGES_H_
#define SLUICE_SERVER_AGGREGATION_GRADIENT_AGES_H_

#include <cstdint>
#include <vector>

#include "server/aggregation/parameter_history.h"
#include "server/policy/step_terms.h"

namespace sluice {

// Externally synchronized.
class GradientAges {
 public:
  // `sgd`: the optimizer's steps are proportional to the gradients, as those of SGD are. The rule
  // gap_aware then divides each gradient by its gap. The steps of other optimizers hardly depend on
  // the size of a gradient, so the rule divides their learning rate.
  explicit GradientAges(bool sgd) : sgd_(sgd) {}

  // Counts a gradient of the coming step. Returns the number by which the gradient is divided.
  double Count(uint64_t staleness, const StepTerms& terms);

  // Sets what the ages of the gradients decide in the terms of their step. Gradients that the
  // journal summed up have no ages: then `terms` are complete, and stay as they are.
  void Complete(StepTerms& terms) const;

  // Before a step: begins or ends the history, as the step's rules need it. `sample` is that of the
  // current parameters.
  void BeginStep(const StepTerms& terms, const std::vector<float>& sample);
  // After it: `sample` is that of the newest parameters, of a step that was made or not.
  void EndStep(const StepTerms& terms, const std::vector<float>& sample);

  // A step with these complete terms was made of so many gradients.
  void NoteMade(const StepTerms& terms, uint32_t gradients);

  // Forgets the gradients that were counted.
  void Clear();

  // The optimizer's slots were restored. The next step decays what is in them.
  void NoteRestored() { since_decay_ = UINT32_MAX / 2; }

 private:
  const bool sgd_;
  ParameterHistory history_;  // empty unless a rule needs it
  uint64_t decays_ = 0;       // of ordered momentum
  uint32_t since_decay_ = 0;  // gradients
  uint32_t count_ = 0;        // gradients since Clear()
  double gap_shares_ = 0;     // 1 / gap, summed over them
  double lateness_ = 0;       // likewise
};

}  // namespace sluice

#endif  // SLUICE_SERVER_AGGREGATION_GRADIENT_AGES_H_
