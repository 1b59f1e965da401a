// How long virtual workers compute: numbers that are drawn from a distribution, and that follow
// from a seed.

#ifndef SLUICE_TOOLS_BENCH_STALENESS_COMPUTE_TIMES_H_
#define SLUICE_TOOLS_BENCH_STALENESS_COMPUTE_TIMES_H_

#include <cstdint>
#include <random>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sluice::bench {

struct ComputeTimeOptions {
  enum class Kind {
    kConstant,     // always 1
    kExponential,  // the staleness of the others' gradients is then a geometric number
    kLognormal,    // exp of a normal number: most gradients take about as long, a few much longer
    kStalls,       // 1, and now and then much longer
  };
  Kind kind = Kind::kExponential;
  double sigma = 0;           // lognormal: standard deviation of the logarithm, above 0, at most 3
  double chance = 0;          // stalls: of a batch, from 0 to 1,
  double stall = 0;           // to take so much longer than 1; at least 0
  uint32_t slow_workers = 0;  // the last of the workers, which
  double slowness = 1;        // take so many times as long; above 0
};

// `distribution` is "constant", "exponential", "lognormal:SIGMA" or "stalls:CHANCE:LONGER". `slow`
// is empty, or COUNT:FACTOR as in "2:5": two workers take five times as long. INVALID_ARGUMENT
// names the text that is wrong.
absl::StatusOr<ComputeTimeOptions> ParseComputeTimes(absl::string_view distribution,
                                                     absl::string_view slow);

// The times of each worker are a sequence of their own: they depend on the seed and on the worker's
// index, and on nothing that other workers do. Used by one thread.
class ComputeTimes {
 public:
  ComputeTimes(const ComputeTimeOptions& options, uint32_t workers, uint64_t seed);

  // The worker's next time, for one batch. Its unit is the mean time of a worker that is not slow
  // and does not stall.
  double Next(uint32_t worker);

 private:
  const ComputeTimeOptions options_;
  std::vector<std::mt19937_64> generators_;  // one for each worker
};

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_STALENESS_COMPUTE_TIMES_H_
