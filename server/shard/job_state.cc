#include "server/shard/job_state.h"

#include <glog/logging.h>

namespace sluice {
namespace {

// So long a worker that leaves waits for the end to be saved. Its call has a deadline of 60 s.
constexpr absl::Duration kLongestSave = absl::Seconds(30);

}  // namespace

std::string JobState::NameOf(SessionId session) const {
  const auto record = coordinator.roster().sessions().Find(session);
  return record.ok() ? (*record)->worker : "";
}

absl::Status JobState::CheckRecovery(Recovery at_least) const {
  if (recovery >= at_least) return absl::OkStatus();
  return absl::UnavailableError("the servers restore their state; try again");
}

void JobState::RequestPeriodicCheckpoint() {
  if (!checkpoints.has_periodic()) return;
  if (others.saves()) {
    LOG(WARNING) << "step " << coordinator.step() << " gets no checkpoint, since another server "
                 << "still writes the one before; make --checkpoint-every larger";
  } else if (coordinator.RequestCheckpoint().ok()) {
    checkpoints.AddPeriodic();
  }
}

// A server that goes down saves the end by itself, unless another server is lost. That one may have
// lost steps.
void JobState::AnswerIfEndIsSaved(Completions* completions) {
  if (await_end.empty()) return;
  const bool waits = coordinator.AwaitsEnd();
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

bool JobState::AwaitOthers(bool (ReplicaGroup::*over)() const, absl::Duration longest) {
  if (pump != nullptr) {
    mu.Unlock();
    pump([this, over] {
      absl::MutexLock lock(&mu);
      return (others.*over)();
    });
    mu.Lock();
  }
  return mu.AwaitWithTimeout(absl::Condition(&others, over), longest);
}

}  // namespace sluice
