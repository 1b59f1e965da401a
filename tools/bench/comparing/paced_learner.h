// A learner whose batches take as long as on a slower processor, and that stops after a given time.

#ifndef SLUICE_TOOLS_BENCH_COMPARING_PACED_LEARNER_H_
#define SLUICE_TOOLS_BENCH_COMPARING_PACED_LEARNER_H_

#include <cstdint>
#include <memory>

#include "absl/time/time.h"
#include "tools/bench/staleness/compute_times.h"
#include "worker/torch/training/gradient_group.h"
#include "worker/training/learner.h"

namespace sluice::bench {

struct PaceOptions {
  absl::Duration batch;  // a time of 1 in `times`; a batch that computes for longer takes that long
  ComputeTimeOptions times;
  absl::Duration limit;  // Learn() returns CANCELLED when so much time has passed since the first
  uint64_t seed = 1;
};

// What the process has used since the first batch.
struct PacedUsage {
  absl::Duration wall;
  absl::Duration cpu;       // user and system, of all threads
  absl::Duration exchange;  // the time of `wall` that was spent with the server or the group
  int64_t batches = 0;
};

// Sleeps before each batch for as long as its computation is too short, then lets the other learner
// learn. Used by one thread.
class PacedLearner final : public Learner {
 public:
  // The ranks of `group`, if it is not null, stop after the same batch. It must outlive this.
  PacedLearner(std::unique_ptr<Learner> learner, const PaceOptions& options, GradientGroup* group);

  Place place() const override { return learner_->place(); }
  absl::StatusOr<LearnReport> Learn(Batch batch) override;
  absl::Status Finish(bool stay) override { return learner_->Finish(stay); }
  absl::StatusOr<TestResult> Evaluate() override { return learner_->Evaluate(); }
  absl::Status Report(const Results& results) override { return learner_->Report(results); }
  void Fail(const absl::Status& why) override { learner_->Fail(why); }

  PacedUsage usage() const;

  // Since the first batch; zero before.
  absl::Duration elapsed() const;

 private:
  bool MayGoOn();

  const std::unique_ptr<Learner> learner_;
  const PaceOptions options_;
  GradientGroup* const group_;
  ComputeTimes times_;
  absl::Time began_ = absl::InfiniteFuture();
  absl::Duration cpu_before_;
  absl::Duration exchange_;
  int64_t batches_ = 0;
  absl::Duration computed_;  // the time that the last batch took to compute
};

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_COMPARING_PACED_LEARNER_H_
