#include "server/shard/job_state.h"

#include <glog/logging.h>

namespace sluice {
namespace {

// So long a worker that leaves waits for the end to be saved. Its call has a deadline of 60 s.
constexpr absl::Duration kLongestSave = absl::Seconds(30);

}  // namespace

std::string JobState::NameOf(SessionId session) const {
  const auto record = parts.roster.sessions().Find(session);
  return record.ok() ? (*record)->worker : "";
}

absl::Status JobState::CheckRecovery(Recovery at_least) const {
  if (recovery >= at_least) return absl::OkStatus();
  return absl::UnavailableError("the servers restore their state; try again");
}

void JobState::RequestPeriodicCheckpoint() {
  if (!checkpoints.has_periodic()) return;
  if (others_checkpoints.saves()) {
    LOG(WARNING) << "step " << parts.step.number() << " gets no checkpoint, since another server "
                 << "still writes the one before; make --checkpoint-every larger";
  } else if (parts.lifecycle.initialized()) {
    checkpoints.AddPeriodic();
  }
}

// A server that goes down saves the end by itself, unless another server is lost. That one may have
// lost steps.
void JobState::AnswerIfEndIsSaved(Completions* completions) {
  if (await_end.empty()) return;
  const bool waits = parts.lifecycle.AwaitsEnd();
  const bool is_patient = clock.Now() - await_end_since < kLongestSave;
  if (waits && !others.stopped() && is_patient) return;
  const bool is_lost = waits && others.stopped();
  const absl::Status status =
      is_lost ? absl::UnavailableError("another server was lost before the end was saved")
              : absl::OkStatus();
  for (auto& done : std::exchange(await_end, {})) {
    completions->Add([done = std::move(done), status] { done(status); });
  }
}

bool JobState::AwaitOthers(absl::FunctionRef<bool()> over, absl::Duration longest) {
  const auto may_go_on = [this, over]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    return others.stopped() || over();
  };
  if (pump != nullptr) {
    mu.Unlock();
    pump([this, &may_go_on] {
      absl::MutexLock lock(&mu);
      return may_go_on();
    });
    mu.Lock();
  }
  return mu.AwaitWithTimeout(absl::Condition(&may_go_on), longest);
}

void JobState::StopOthers(const absl::Status& why, Completions* completions) {
  others_checkpoints.Stop(why);
  summaries.Stop(why, completions);
  others.Stop(why, completions);
}

absl::StatusOr<uint64_t> JobState::Summarize(const TensorQuery& query, const StripedTensor& tensor,
                                             Step step, SummaryCallback done) {
  absl::Status ready = others.why_stopped();
  if (ready.ok()) ready = others_checkpoints.CheckLoaded();
  if (!ready.ok()) return ready;
  const auto number = summaries.Begin(tensor, others.replicas(), step, std::move(done));
  if (number.ok()) others.Send(SummarizeTensor{*number, query});
  return number;
}

void JobState::DescribeOthers(ShardStatus* status) const {
  status->servers = others.replicas();
  if (others.replicas() > 1 && !others.stopped()) status->awaited_holder = carried.awaited();
}

}  // namespace sluice
