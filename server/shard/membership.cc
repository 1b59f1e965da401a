#include "server/shard/membership.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/protocol/optimizer_options.h"
#include "server/membership/session_queries.h"
#include "server/policy/staleness_rules.h"
#include "server/shard/job_parts.h"

namespace sluice {
namespace {

// Otherwise an observer could take the name of a result before the parameters are final.
absl::Status ResultsTooEarly() {
  return MakeError(Reason::kBadArgument,
                   "field results comes from an observer before training has finished; wait for "
                   "the end of training, or leave without results");
}

absl::Status CheckFarewell(const Farewell& farewell) {
  if (farewell.failure.size() > kMostFailureBytes) {
    return MakeError(Reason::kBadArgument,
                     absl::StrCat("field failure has ", farewell.failure.size(),
                                  " bytes, expected at most ", kMostFailureBytes));
  }
  if (farewell.failure.empty() || farewell.results.empty()) return absl::OkStatus();
  return MakeError(Reason::kBadArgument,
                   "field results comes from a worker that has failed; expected none");
}

}  // namespace

Membership::Membership(JobParts& job) : job_(job), ticked_(job.clock.Now()) {}

absl::StatusOr<Welcome> Membership::Join(const JoinRequest& request, JobListener listener,
                                         Completions* completions) {
  if (job_.lifecycle.draining()) return job_.lifecycle.serving();
  const bool opens = job_.roster.model().layout == nullptr;
  const bool steps_itself = PublishesGradients(request.optimizer.options);
  if ((opens || steps_itself) && request.role == SessionRole::kWorker) {
    const absl::Status fits = CheckRules(job_.settings.consistency(), request.optimizer);
    if (!fits.ok()) return fits;
  }
  // The first step waits for all the workers that were launched, so they take part in it whenever
  // they join. An observer takes part in no step, so it never has to wait for a boundary.
  const Step now = job_.step.number();
  const bool boundary = job_.step.contributions().empty() && job_.admission.empty();
  const SessionRecords& records = job_.roster.sessions().records();
  const auto earlier = records.find(request.worker);
  const bool contributed = earlier != records.end() && earlier->second.contributed == now;
  const bool first = !job_.roster.started() && !contributed;
  const bool at_once = request.role == SessionRole::kObserver || boundary || first ||
                       TakesOver(request, records, now) ||
                       !job_.settings.policy().JoinsAtStepBoundary();
  Welcome welcome;
  welcome.resumed = job_.roster.sessions().Remembers(request);
  const uint32_t late = job_.roster.CountLate();
  const auto record = job_.roster.Join(request, std::move(listener), at_once ? now : now.Next(),
                                       job_.clock.Now(), completions);
  if (!record.ok()) return record.status();
  if (opens) {
    job_.settings.SetOptimizer(job_.roster.model().optimizer);
    job_.admission.LimitInFlight();
  }
  welcome.session = (*record)->session;
  welcome.job_id = job_.options.job_id;
  welcome.incarnation = job_.options.incarnation;
  welcome.step = std::max((*record)->active_from, now);
  welcome.initialized = job_.lifecycle.initialized();
  welcome.last_sequence = (*record)->last_sequence;
  welcome.lease = job_.options.lease;
  welcome.consistency = job_.settings.consistency();
  welcome.index = (*record)->index;
  welcome.workers = job_.options.expected_workers;
  welcome.pushes_before = (*record)->pushes_before;
  welcome.lost_steps = job_.history.lost_steps();
  welcome.late = job_.roster.CountLate() < late;
  welcome.schedule = job_.settings.schedule();
  welcome.earlier_launches = job_.roster.launches().earlier;
  if (job_.roster.finished() && request.role == SessionRole::kObserver && (*record)->listener) {
    // It missed the announcement.
    completions->Add([listener = (*record)->listener, now] {
      listener({JobEvent::Kind::kTrainingFinished, now, {}});
    });
  }
  return welcome;
}

absl::StatusOr<Step> Membership::Heartbeat(SessionId session,
                                           const absl::optional<StepMeasurement>& measurement) {
  const absl::Status renewed = job_.roster.sessions().NoteSeen(session, job_.clock.Now());
  if (!renewed.ok()) return renewed;
  if (measurement.has_value()) {
    const absl::Status valid = CheckMeasurement(*measurement, job_.step.number());
    if (!valid.ok()) return valid;
    measured_ = {measured_.count + 1, *measurement};
  }
  return job_.step.number();
}

absl::StatusOr<Step> Membership::Leave(SessionId session, const Farewell& farewell,
                                       Completions* completions) {
  const auto record = job_.roster.sessions().Find(session);
  if (!record.ok()) return record.status();
  const bool observes = (*record)->role == SessionRole::kObserver;
  if (observes && !farewell.results.empty() && !job_.lifecycle.draining() &&
      !job_.roster.has_finished()) {
    return ResultsTooEarly();
  }
  const absl::Status possible = CheckFarewell(farewell);
  if (!possible.ok()) return possible;
  const absl::Status reported = results_.Add(farewell.results);
  if (!reported.ok()) return reported;
  const absl::Status left = job_.roster.Leave(session, job_.clock.Now(), farewell.failure);
  if (!left.ok()) return left;
  const bool ends_with_job = job_.lifecycle.draining() && !farewell.failure.empty();
  if (!observes && !ends_with_job) job_.watch.OnLeave(**record, completions);
  return job_.step.number();
}

// Bytes that arrive renew a lease, at no cost for each chunk. The time since the last tick does not
// count against workers that wait for this server. Nor against those that others wait for, while
// another server is silent: they may wait for that one.
void Membership::NoteServed(bool silent) {
  const absl::Time now = job_.clock.Now();
  const absl::Time before = std::exchange(ticked_, now);
  for (const SessionId session : job_.admission.TakeHeard()) {
    job_.roster.sessions().NoteSeen(session, now).IgnoreError();
  }
  std::vector<SessionId> served = job_.admission.Served();
  if (silent) {
    const std::vector<SessionId> holders = job_.step.Holders(job_.step.Progress());
    served.insert(served.end(), holders.begin(), holders.end());
  }
  for (const SessionId session : job_.states.Served()) served.push_back(session);
  for (const SessionId session : served) job_.roster.sessions().NoteServed(session, before, now);
}

// Ends a wait that has lasted for max_step_wait. In sync and backup the policy itself completes a
// step that shall proceed.
void Membership::EndOverdueWait(Completions* completions) {
  const Consistency& consistency = job_.settings.consistency();
  const bool by_clock = job_.settings.policy().BoundsLead();
  const bool evicts = consistency.on_max_step_wait == StepWaitAction::kEvict;
  const bool excuses = by_clock && consistency.on_max_step_wait == StepWaitAction::kProceed;
  // In other modes no step waits for particular workers.
  const bool anybody = by_clock || job_.settings.policy().OncePerStep();
  if (!anybody || (!evicts && !excuses)) return;
  for (const SessionId delayer : job_.step.Delayers()) {
    const SessionRecord& record = **job_.roster.sessions().Find(delayer);
    if (evicts) {
      job_.roster.Evict(record, job_.clock.Now(), completions);
    } else {
      job_.roster.sessions().Change(record, [](SessionRecord& delays) { delays.excused = true; });
    }
  }
  job_.pulls.RestartHoldUp(job_.clock.Now());
  job_.step.EndWait();
}

void Membership::Describe(ShardStatus* state) const { state->measured = measured_; }

}  // namespace sluice
