// Where a job is in its life: it gets its first parameters, trains, ends, and goes down. With a
// directory, the end of training is saved before it is announced.

#ifndef SLUICE_SERVER_MEMBERSHIP_JOB_LIFECYCLE_H_
#define SLUICE_SERVER_MEMBERSHIP_JOB_LIFECYCLE_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "server/membership/roster.h"
#include "server/state/shard_status.h"

namespace sluice {

// Externally synchronized; JobParts owns it.
class JobLifecycle {
 public:
  // The references outlive it. `clock` is the one that times leases.
  JobLifecycle(const Roster& roster, const Clock& clock) : roster_(roster), clock_(clock) {}

  // There are parameters.
  void Initialize() { initialized_ = clock_.Now(); }
  bool initialized() const { return initialized_.has_value(); }
  absl::Status CheckInitialized() const;  // NOT_INITIALIZED if there are none

  // The server goes down: all who come get `why`, an error.
  void GoDown(const absl::Status& why) { serving_ = why; }
  const absl::Status& serving() const { return serving_; }  // OK, or that error
  bool draining() const { return !serving_.ok(); }          // also when suspended
  // Another incarnation takes over: the error is UNAVAILABLE without a reason.
  bool suspended() const;

  // From now on, the end of training is saved before it is announced.
  void SaveEnd() { end_ = roster_.finished() ? End::kSaved : End::kUnsaved; }
  // Returns whether to save the end now: training is over, and its end is not saved. Whoever saves
  // it then calls OnEndSaved().
  bool BeginsToSaveEnd();
  bool saves_end() const { return end_ == End::kSaving; }
  // The end is saved at that step, or cannot be saved, and is then announced without. If a worker
  // has joined meanwhile, or `latest`, the job's step, is another, it was not the end.
  void OnEndSaved(const absl::StatusOr<Step>& saved, Step latest);
  // The end is from now on announced without being saved. No effect if it is saved already.
  void ForgetEnd();
  // Whether training is over, and its end is still to be saved.
  bool AwaitsEnd() const;

  // Whether training is over, also before that is announced; see Roster::finished().
  bool finished() const { return roster_.finished() || saves_end(); }
  bool ends() const { return (draining() && !suspended()) || finished(); }  // no step will follow

  // Fills in the phase, when parameters came, and how it ended.
  void Describe(ShardStatus* state) const;

 private:
  enum class End { kNever, kUnsaved, kSaving, kSaved };  // kNever: it is announced without

  Phase phase() const;

  const Roster& roster_;
  const Clock& clock_;
  absl::optional<absl::Time> initialized_;
  absl::Status serving_;
  End end_ = End::kNever;
  bool end_was_observed_ = true;  // an observer was there when it began to be saved
};

}  // namespace sluice

#endif  // SLUICE_SERVER_MEMBERSHIP_JOB_LIFECYCLE_H_
