#include "tools/bench/crowds/worker_crowd.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "tools/bench/crowds/bare_worker.h"
#include "tools/bench/crowds/sluice_worker.h"
#include "tools/bench/harness/gradient.h"

namespace sluice::bench {
namespace {

double MonotonicSeconds() {
  const std::chrono::duration<double> now = std::chrono::steady_clock::now().time_since_epoch();
  return now.count();
}

absl::StatusOr<std::unique_ptr<CrowdWorker>> ConnectWorker(const CrowdOptions& options,
                                                           uint32_t index,
                                                           const SharedFloats& gradient) {
  if (options.bare) return std::make_unique<BareWorker>(options, gradient.values);
  return SluiceWorker::Connect(options, index, gradient);
}

}  // namespace

absl::StatusOr<std::unique_ptr<WorkerCrowd>> WorkerCrowd::Connect(const CrowdOptions& options) {
  const SharedFloats gradient = Share(SyntheticGradient(options.elements));
  std::vector<std::unique_ptr<CrowdWorker>> workers;
  for (uint32_t i = 0; i < options.workers; ++i) {
    auto worker = ConnectWorker(options, options.first + i, gradient);
    if (!worker.ok()) return worker.status();
    workers.push_back(*std::move(worker));
  }
  return std::unique_ptr<WorkerCrowd>(new WorkerCrowd(std::move(workers)));
}

absl::StatusOr<JoinTimes> WorkerCrowd::Join() {
  JoinTimes times;
  times.first = MonotonicSeconds();
  for (const auto& worker : workers_) {
    threads_.emplace_back([this, &worker = *worker] { RunWorker(worker); });
  }
  const auto decided = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return joined_ == workers_.size() || !failure_.ok();
  };
  const absl::MutexLock lock(&mu_, absl::Condition(&decided));
  times.last = MonotonicSeconds();
  if (!failure_.ok()) return failure_;
  return times;
}

void WorkerCrowd::RunWorker(CrowdWorker& worker) {
  const absl::Status joined = worker.Join();
  if (!joined.ok()) return Fail(joined);
  {
    const absl::MutexLock lock(&mu_);
    ++joined_;
  }
  start_.WaitForNotification();
  const absl::Status worked = worker.Work(stop_);
  if (!worked.ok()) Fail(worked);
}

void WorkerCrowd::Fail(const absl::Status& why) {
  const absl::MutexLock lock(&mu_);
  failure_.Update(why);
}

TakenRounds WorkerCrowd::Take() {
  TakenRounds taken;
  taken.least = std::numeric_limits<uint64_t>::max();
  for (const auto& worker : workers_) {
    const std::vector<float> seconds = worker->Take();
    taken.seconds.insert(taken.seconds.end(), seconds.begin(), seconds.end());
    taken.least = std::min<uint64_t>(taken.least, seconds.size());
  }
  return taken;
}

uint64_t WorkerCrowd::MostRounds() const {
  uint64_t most = 0;
  for (const auto& worker : workers_) most = std::max(most, worker->answers().all());
  return most;
}

absl::StatusOr<PushAnswers> WorkerCrowd::Leave() {
  stop_.Raise();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  const absl::MutexLock lock(&mu_);
  if (!failure_.ok()) return failure_;
  PushAnswers sum;
  for (const auto& worker : workers_) {
    const PushAnswers answers = worker->answers();
    sum.accepted += answers.accepted;
    sum.stale += answers.stale;
    sum.others += answers.others;
  }
  return sum;
}

}  // namespace sluice::bench
