// How a step changed the size of the parameters.

#ifndef SLUICE_SERVER_AGGREGATION_STEP_NORMS_H_
#define SLUICE_SERVER_AGGREGATION_STEP_NORMS_H_

namespace sluice {

// The Euclidean norms of a sample of the parameters, before a step and after it.
struct StepNorms {
  double before = 0;
  double after = 0;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_AGGREGATION_STEP_NORMS_H_
