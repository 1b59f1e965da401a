#include "server/shard/state_calls.h"

#include <memory>
#include <utility>

#include "common/base/error.h"
#include "common/protocol/optimizer_options.h"

namespace sluice {
namespace {

// Of an optimizer with a dozen slots of float32, and what its program adds.
constexpr uint64_t kMostBytesOfElement = 64;
constexpr uint64_t kMostBytesBeside = 64 << 20;

}  // namespace

absl::Status StateCalls::CheckWorker(SessionId session) const {
  const Roster& roster = job_.parts.roster;
  const auto worker = roster.sessions().FindWorker(session);
  if (!worker.ok()) return worker.status();
  if (PublishesGradients(roster.model().optimizer->options)) {
    return absl::OkStatus();
  }
  return MakeError(Reason::kBadArgument,
                   "the server of this job has the model; pull its parameters with PullParams");
}

StateRequestId StateCalls::Pull(SessionId session, absl::optional<uint64_t> steps,
                                WorkerStateCallback done) {
  StateRequestId id;
  {
    CompletingLock lock(&job_.mu);
    const absl::Status may = CheckWorker(session);
    if (may.ok()) {
      // Before the first step there is no model that could be ahead.
      const std::shared_ptr<const Snapshot> latest = stripe_.latest();
      const bool is_ahead = latest != nullptr && steps.value_or(0) > latest->optimizer_steps;
      id = job_.parts.states.Add(session, is_ahead ? steps : absl::nullopt, std::move(done),
                                 lock.completions());
    } else {
      lock.completions()->Add([done = std::move(done), may] { done(may); });
    }
  }
  steps_.Advance();
  return id;
}

bool StateCalls::Cancel(StateRequestId id) {
  absl::MutexLock lock(&job_.mu);
  return job_.parts.states.Cancel(id);
}

absl::StatusOr<StateOfferId> StateCalls::BeginOffer(SessionId session, uint64_t* most) {
  absl::MutexLock lock(&job_.mu);
  const absl::Status may = CheckWorker(session);
  if (!may.ok()) return may;
  *most = kMostBytesOfElement * job_.parts.roster.model().layout->size() + kMostBytesBeside;
  return job_.parts.states.BeginOffer(session);
}

void StateCalls::HandOn(StateOfferId offer, std::string bytes, uint64_t checksum) {
  const auto shared = std::make_shared<const std::string>(std::move(bytes));
  {
    CompletingLock lock(&job_.mu);
    const std::shared_ptr<const Snapshot> latest = stripe_.latest();
    job_.parts.states.HandOn(offer, {latest->step, latest->optimizer_steps, shared, checksum},
                             lock.completions());
  }
  steps_.Advance();
}

void StateCalls::Fail(StateOfferId offer, const std::string& failure) {
  {
    CompletingLock lock(&job_.mu);
    job_.parts.states.Fail(offer, failure, lock.completions());
  }
  steps_.Advance();
}

void StateCalls::EndOffer(StateOfferId offer) {
  {
    CompletingLock lock(&job_.mu);
    job_.parts.states.EndOffer(offer, lock.completions());
  }
  steps_.Advance();
}

}  // namespace sluice
