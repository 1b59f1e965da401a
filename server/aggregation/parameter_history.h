// Keeps what the server needs of its latest steps to judge stale gradients: how far the parameters
// have moved, and how often momentum has decayed.
//
// Distances are measured on a ParameterSample, so that neither time nor memory grows with the
// model, and no copy is kept for each worker. The gap is a ratio of two distances.
//
// GradientAges owns one.

#ifndef SLUICE_SERVER_AGGREGATION_PARAMETER_HISTORY_H_
#define SLUICE_SERVER_AGGREGATION_PARAMETER_HISTORY_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace sluice {

// Externally synchronized.
class ParameterHistory {
 public:
  // The steps that are kept: 16 MiB. A gradient that is older counts as being that old.
  static constexpr size_t kSteps = 1024;

  bool empty() const { return entries_.empty(); }

  // Forgets all steps, but not the length of a mean step.
  void Clear() { entries_.clear(); }

  // Adds the sample of the newest parameters. `decays` is how often momentum has decayed.
  void Add(const std::vector<float>& sample, uint64_t decays);

  // 1 + how far the newest parameters lie from those of `staleness` steps before, in mean steps
  // (Barkai et al. 2019, with the length of a mean step as C). 1 if they are the same, or if no
  // step has moved them.
  double GapSince(uint64_t staleness) const;

  // How often momentum has decayed since `staleness` steps before.
  uint64_t DecaysSince(uint64_t staleness) const;

 private:
  struct Entry {
    std::vector<float> sample;
    uint64_t decays = 0;
  };

  const Entry& Before(uint64_t staleness) const;

  std::deque<Entry> entries_;  // the newest is last
  uint64_t steps_ = 0;         // whose lengths are in mean_step_
  double mean_step_ = 0;       // of the latest thousand that moved the sample, about
};

}  // namespace sluice

#endif  // SLUICE_SERVER_AGGREGATION_PARAMETER_HISTORY_H_
