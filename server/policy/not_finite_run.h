// Counts numbers that were NaN or infinite, in a row.

#ifndef SLUICE_SERVER_POLICY_NOT_FINITE_RUN_H_
#define SLUICE_SERVER_POLICY_NOT_FINITE_RUN_H_

#include <cstdint>

#include "common/base/ids.h"

namespace sluice {

// Externally synchronized.
class NotFiniteRun {
 public:
  static constexpr uint64_t kFinite = 64;  // in a row; then the trouble is over

  void AddFinite() {
    count_ = 0;
    ++finite_;
  }
  void Add(Step step, uint64_t count) {
    if (count_ == 0) since_ = step;
    count_ += count;
    finite_ = 0;
  }

  uint64_t count() const { return count_; }
  Step since() const { return since_; }  // of the first; only if count() > 0
  bool over() const { return finite_ >= kFinite; }

 private:
  uint64_t count_ = 0;
  Step since_;
  uint64_t finite_ = kFinite;  // finite ones in a row
};

}  // namespace sluice

#endif  // SLUICE_SERVER_POLICY_NOT_FINITE_RUN_H_
