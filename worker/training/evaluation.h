#ifndef SLUICE_WORKER_TRAINING_EVALUATION_H_
#define SLUICE_WORKER_TRAINING_EVALUATION_H_

#include <cstdint>

namespace sluice {

// How well a model tells the classes of a data set's samples apart. A sample counts towards top-k
// if fewer than k classes are ahead of its label: those of a larger logit, and of an equal one
// those that come before it. A logit that is NaN is ahead of all others, and a label of one never
// counts.
struct Evaluation {
  int64_t samples = 0;
  double loss = 0;  // mean cross entropy in nats, summed up in double precision; NaN if a logit is
  double top1 = 0;  // share of the samples
  double top5 = 0;  // share of the samples
};

}  // namespace sluice

#endif  // SLUICE_WORKER_TRAINING_EVALUATION_H_
