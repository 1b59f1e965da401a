#include "tools/bench/staleness/virtual_training.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/protocol/protocol_types.h"
#include "common/tensor/shared_floats.h"
#include "common/tensor/tensor_chunk.h"
#include "server/shard/shard.h"
#include "worker/client/pulled_means.h"

namespace sluice::bench {
namespace {

class VirtualClock final : public Clock {
 public:
  absl::Time Now() const override { return absl::UnixEpoch() + absl::Seconds(seconds_); }
  double seconds() const { return seconds_; }
  void Set(double seconds) { seconds_ = seconds; }

 private:
  double seconds_ = 0;
};

struct VirtualWorker {
  SessionId session;
  Sequence sequence;                           // of its latest push
  PullHeader pulled;                           // of the parameters that it holds
  std::shared_ptr<const Snapshot> parameters;  // null while it waits for them
  std::vector<int64_t> batches;                // that it computes
};

TensorChunk WholeChunk(const SharedFloats& vector) {
  TensorChunk chunk;
  chunk.pieces = {AsPiece(vector.values)};
  chunk.owner = vector.owner;
  return chunk;
}

// The mean loss of the latest batches.
class Losses {
 public:
  explicit Losses(int64_t batches_per_epoch)
      : most_(static_cast<size_t>(std::max<int64_t>(batches_per_epoch, 1))) {}

  void Note(float loss, size_t batches) {
    for (size_t i = 0; i < batches; ++i) latest_.push_back(loss);
    while (latest_.size() > most_) latest_.pop_front();
  }

  double Mean() const {
    double sum = 0;
    for (const float loss : latest_) sum += loss;
    return latest_.empty() ? 0 : sum / static_cast<double>(latest_.size());
  }

 private:
  const size_t most_;
  std::deque<float> latest_;
};

class VirtualRun {
 public:
  VirtualRun(const VirtualTrainingOptions& options, Workload& workload,
             const EpochListener& on_epoch)
      : options_(options),
        workload_(workload),
        on_epoch_(on_epoch),
        shard_(options.shard, clock_),
        times_(options.times, options.shard.expected_workers, options.seed),
        workers_(options.shard.expected_workers),
        losses_(workload.batches_per_epoch()) {}

  absl::Status Start();
  absl::Status Play();
  TrainingReport Report(absl::Status ended);

 private:
  absl::Status Join(uint32_t index);
  absl::Status Initialize();
  void Pull(uint32_t index);
  absl::Status TakeAnswers();
  absl::Status Begin(uint32_t index);
  absl::Status ComputeAndPush(uint32_t index);
  absl::Status Push(const PushHeader& header, const SharedFloats& vector);
  void NoteComputed(const Computed& computed, size_t batches);
  absl::Status CheckNobodyWaits() const;

  const VirtualTrainingOptions& options_;
  Workload& workload_;
  const EpochListener& on_epoch_;
  VirtualClock clock_;
  Shard shard_;
  ComputeTimes times_;
  std::vector<VirtualWorker> workers_;
  std::set<std::pair<double, uint32_t>> arrivals_;  // when, and whose, in ascending order
  // The shard's answers to pulls. They are taken when the call that brought them is over.
  std::deque<std::pair<uint32_t, absl::StatusOr<PullResult>>> answers_;
  int64_t begun_ = 0;     // batches
  int64_t computed_ = 0;  // batches
  Losses losses_;
};

absl::Status VirtualRun::Start() {
  for (uint32_t index = 0; index < workers_.size(); ++index) {
    const absl::Status joined = Join(index);
    if (!joined.ok()) return joined;
  }
  const absl::Status initialized = Initialize();
  if (!initialized.ok()) return initialized;
  for (uint32_t index = 0; index < workers_.size(); ++index) Pull(index);
  return TakeAnswers();
}

absl::Status VirtualRun::Join(uint32_t index) {
  JoinRequest request;
  request.worker = absl::StrCat("worker-", index);
  request.process_nonce = ProcessNonce(index + 1);
  request.layout = workload_.layout();
  request.optimizer = options_.optimizer;
  request.index = index;
  const auto welcome = shard_.Join(request, [](const JobEvent&) {});
  if (!welcome.ok()) return welcome.status();
  workers_[index].session = welcome->session;
  return absl::OkStatus();
}

absl::Status VirtualRun::Initialize() {
  auto start = shard_.store().BeginInitialize(workers_.front().session);
  if (!start.ok()) return start.status();
  const absl::Status added =
      start->parameters->Add(WholeChunk(Share(workload_.first_parameters())));
  if (!added.ok()) return added;
  absl::Status initialized;
  shard_.store().FinishInitialize(std::move(start->parameters),
                                  [&](const auto& outcome) { initialized = outcome.status(); });
  return initialized;
}

absl::Status VirtualRun::Play() {
  while (!arrivals_.empty()) {
    const auto [time, index] = *arrivals_.begin();
    arrivals_.erase(arrivals_.begin());
    clock_.Set(time);
    absl::Status status = ComputeAndPush(index);
    if (status.ok()) status = TakeAnswers();
    if (!status.ok()) return status;
  }
  return CheckNobodyWaits();
}

// Asks for the parameters with which the worker continues.
void VirtualRun::Pull(uint32_t index) {
  VirtualWorker& worker = workers_[index];
  worker.parameters = nullptr;
  PullRequest request;
  request.session = worker.session;
  if (worker.sequence > Sequence()) request.after = worker.sequence;
  shard_.store().Pull(request, [this, index](absl::StatusOr<PullResult> result) {
    answers_.emplace_back(index, std::move(result));
  });
}

absl::Status VirtualRun::TakeAnswers() {
  while (!answers_.empty()) {
    const auto [index, result] = std::move(answers_.front());
    answers_.pop_front();
    if (!result.ok()) return result.status();
    workers_[index].pulled = result->header;
    workers_[index].parameters = result->snapshot;
    const absl::Status begun = Begin(index);
    if (!begun.ok()) return begun;
  }
  return absl::OkStatus();
}

// Lets the worker compute the next batches, or leave if there are none.
absl::Status VirtualRun::Begin(uint32_t index) {
  VirtualWorker& worker = workers_[index];
  worker.batches.clear();
  double time = clock_.seconds();
  while (worker.batches.size() < options_.local_steps && begun_ < options_.batches) {
    worker.batches.push_back(begun_++);
    time += times_.Next(index);
  }
  if (worker.batches.empty()) return shard_.Leave(worker.session, {}).status();
  arrivals_.emplace(time, index);
  return absl::OkStatus();
}

absl::Status VirtualRun::ComputeAndPush(uint32_t index) {
  VirtualWorker& worker = workers_[index];
  const double rate = options_.shard.schedule.FactorAt(worker.pulled.step);
  Computed computed =
      workload_.Compute(index, worker.parameters->values.span(), worker.batches, rate);
  worker.sequence = worker.sequence.Next();
  PushHeader header;
  header.session = worker.session;
  header.sequence = worker.sequence;
  header.step = worker.pulled.step;
  header.incarnation = worker.pulled.incarnation;
  header.samples = computed.samples;
  header.loss = computed.loss;
  if (!options_.shard.consistency.CountsFreshOnly() && !computed.means.empty()) {
    PulledMeans pulled(computed.means, workload_.layout());
    pulled.Keep(worker.parameters->values.span());
    header.running_means = std::make_shared<const RunningMeans>(
        pulled.Subtract(computed.means, /*whole_only=*/false, absl::MakeSpan(computed.values)));
  }
  const absl::Status pushed = Push(header, Share(std::move(computed.values)));
  if (!pushed.ok()) return pushed;
  Pull(index);
  NoteComputed(computed, worker.batches.size());
  return absl::OkStatus();
}

// Every call of the shard does all its work before it returns, but a push whose step waits for
// others is answered now, too.
absl::Status VirtualRun::Push(const PushHeader& header, const SharedFloats& vector) {
  absl::StatusOr<PushOutcome> outcome = absl::InternalError("the server did not answer a push");
  const PushCallback done = [&outcome](absl::StatusOr<PushOutcome> answer) {
    outcome = std::move(answer);
  };
  shard_.store().BeginPush(header, [&](absl::StatusOr<PushStart> start) {
    if (!start.ok() || start->push == nullptr) {
      done(start.ok() ? absl::StatusOr<PushOutcome>(start->answer) : start.status());
      return;
    }
    const absl::Status added = start->push->Add(WholeChunk(vector));
    if (added.ok()) {
      shard_.store().FinishPush(std::move(start->push), done);
    } else {
      shard_.store().RefusePush(std::move(start->push), added, done);
    }
  });
  return outcome.status();
}

void VirtualRun::NoteComputed(const Computed& computed, size_t batches) {
  losses_.Note(computed.loss, batches);
  const int64_t per_epoch = workload_.batches_per_epoch();
  const int64_t before = computed_ / per_epoch;
  computed_ += static_cast<int64_t>(batches);
  const int64_t epoch = computed_ / per_epoch;
  if (epoch == before || on_epoch_ == nullptr) return;
  on_epoch_({epoch, losses_.Mean()}, shard_.store().stripe().latest()->values.span());
}

// Nobody computes any more, so that nobody can be waited for.
absl::Status VirtualRun::CheckNobodyWaits() const {
  const auto waiting =
      std::count_if(workers_.begin(), workers_.end(),
                    [](const VirtualWorker& worker) { return worker.parameters == nullptr; });
  if (waiting == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(
      waiting, " of ", workers_.size(),
      " workers wait for parameters, and none computes what they wait for: the mode asks for more "
      "gradients than there are workers; lower --quorum"));
}

TrainingReport VirtualRun::Report(absl::Status ended) {
  TrainingReport report;
  report.server = shard_.Describe();
  const std::shared_ptr<const Snapshot> last = shard_.store().stripe().latest();
  report.parameters.assign(last->values.span().begin(), last->values.span().end());
  report.loss = losses_.Mean();
  report.time = clock_.seconds();
  report.ended = std::move(ended);
  return report;
}

}  // namespace

absl::StatusOr<TrainingReport> TrainInVirtualTime(const VirtualTrainingOptions& options,
                                                  Workload& workload,
                                                  const EpochListener& on_epoch) {
  VirtualRun run(options, workload, on_epoch);
  const absl::Status started = run.Start();
  if (!started.ok()) return started;
  return run.Report(run.Play());
}

}  // namespace sluice::bench
