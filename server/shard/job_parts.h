// What a job consists of, except its vectors: parts that each know one thing.

#ifndef SLUICE_SERVER_SHARD_JOB_PARTS_H_
#define SLUICE_SERVER_SHARD_JOB_PARTS_H_

#include "common/base/clock.h"
#include "server/admission/current_step.h"
#include "server/admission/held_answers.h"
#include "server/admission/pull_queue.h"
#include "server/admission/push_admission.h"
#include "server/admission/state_requests.h"
#include "server/membership/job_lifecycle.h"
#include "server/membership/roster.h"
#include "server/policy/runtime_settings.h"
#include "server/replica/pull_result.h"
#include "server/shard/job_history.h"
#include "server/shard/membership.h"
#include "server/shard/running_clock.h"
#include "server/shard/shard_watch.h"
#include "server/state/shard_options.h"

namespace sluice {

// Externally synchronized; JobState owns it. Coordinator::Tick() follows what changes the
// membership, and Coordinator::DecideNext() what changes the others.
struct JobParts {
  // The arguments are those of Shard. `release` is called when a pull is answered.
  JobParts(const ShardOptions& options_, const Clock& clock_, JobListener owner,
           PullRelease release);

  const ShardOptions options;
  RunningClock clock;        // times leases and waits
  RuntimeSettings settings;  // the policy; what the operator changes holds from the next boundary
  Roster roster;             // who takes part
  JobLifecycle lifecycle;    // whether training begins, ends or goes down
  PullQueue pulls;           // those that wait
  StateRequests states;      // who needs a model
  CurrentStep step;
  HeldAnswers answers;  // to pushes
  JobHistory history;   // what is saved
  PushAdmission admission;
  ShardWatch watch;       // whether the job learns
  Membership membership;  // who joins and leaves
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SHARD_JOB_PARTS_H_
