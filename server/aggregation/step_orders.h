// What StepDirector tells all stripes of the vector to do for one step, and what each of them
// reports.
//
// A step takes these orders. Each is carried out on all stripes before the next one is given:
//   kSample       once, before the first step
//   kMeasureSum   if the gradient is clipped
//   kPrepare      always, unless there is no gradient
//   kScale        if the optimizer is LAMB
//   kMake         unless a stripe reports a number that would not be finite
// A step that would not be finite is abandoned with kCopy. A step without gradients has kCopy in
// place of the last four. kDigest is given between two steps.

#ifndef SLUICE_SERVER_AGGREGATION_STEP_ORDERS_H_
#define SLUICE_SERVER_AGGREGATION_STEP_ORDERS_H_

#include <cstdint>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "common/tensor/running_means.h"
#include "common/tensor/table_spec.h"
#include "server/optimizers/optimizer.h"
#include "server/optimizers/trust_ratios.h"

namespace sluice {

// A row of a table that a step would make NaN or infinite, or a slot of it.
struct BadRow {
  uint32_t table = 0;  // its index in the layout
  RowId id = 0;

  friend bool operator<(const BadRow& a, const BadRow& b) {
    return std::tie(a.table, a.id) < std::tie(b.table, b.id);
  }
};

// What a step would make NaN or infinite first.
struct BadNumber {
  uint64_t element = 0;        // of the vector
  absl::optional<BadRow> row;  // if present, the row, and no element
  absl::Status failure;  // not OK: the program's optimizer has failed so, and no element is bad
};

struct StepOrder {
  enum class Kind {
    kSample,      // read the sample
    kMeasureSum,  // add the gradient that was kept for last, and sum up the squares of the sum
    kPrepare,     // begin the step, and look whether it would be finite; LAMB: measure its updates
    kScale,       // take the rates of LAMB's updates, and look whether the step would be finite
    kMake,        // write the next parameters, update the slots, and read the sample
    kCopy,        // copy the current parameters to the next, and read the sample
    kDigest,      // compute the CRC-32 of each unit of the current parameters
  };
  Kind kind = Kind::kSample;
  // kPrepare; each stripe counts the steps itself. kMeasureSum: only the divisor, without clipping.
  OptimizerStep optimizer;
  float statistics_divisor = 1;     // kPrepare: the mean of a pushed statistic is sum / this
  RunningMeans running_means;       // kPrepare: of the whole vector
  absl::optional<float> row_scale;  // kPrepare, kMeasureSum: see RowStep
  TrustRates trust;                 // kScale: of all ranges of the layout
  bool inconsistent_reads = false;  // kMake: what is written may be read before all of it is
};

struct StripeReport {
  std::vector<double> squares;        // kMeasureSum: over the parameters of each unit
  std::vector<double> row_squares;    // kMeasureSum: over each bucket of each table
  std::vector<TrustSquares> updates;  // kPrepare: see TrustRatios::Measure()
  // kPrepare, kScale: the first element of the whole vector that would not be finite.
  absl::optional<uint64_t> bad;
  absl::Status failure;            // kPrepare: see BadNumber; not between servers
  absl::optional<BadRow> bad_row;  // kPrepare: the first row that would not be finite
  std::vector<float> sample;       // kSample, kMake, kCopy: see ParameterSample::Read()
  std::vector<uint32_t> digests;   // kDigest: zlib's CRC-32 of the bytes of each unit
};

}  // namespace sluice

#endif  // SLUICE_SERVER_AGGREGATION_STEP_ORDERS_H_
