// The models with names of a job that has several: for a GAN, twin critics, or one training after
// another. Each has a shard of its own, as if it were a job by itself, and the directory
// models/<name> in that of the job. Server has the model without a name beside them, which may stay
// unused.

#ifndef SLUICE_SERVER_NAMED_MODELS_H_
#define SLUICE_SERVER_NAMED_MODELS_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/trace/trace.h"
#include "server/hosted_model.h"
#include "server/rpc/model_parts.h"
#include "server/server_options.h"
#include "server/step_wait_log.h"

namespace sluice {

// The methods of ModelFinder are for any thread, the others for that of Server::Serve().
class NamedModels final : public ModelFinder {
 public:
  static constexpr size_t kMost = 256;  // names

  // `options` are those of the job. `trace`, which may be null, outlives this.
  NamedModels(const ServerOptions& options, Trace* trace);

  // Whether a job with these options may have models with names: one server that never goes back.
  static bool MayHave(const ServerOptions& options);

  // Restores the models that the directory has. `job_id` is that of the job. Called once, first.
  // Errors are those of HostedModel, and name the model.
  absl::Status Restore(const std::string& job_id) ABSL_LOCKS_EXCLUDED(mu_);

  absl::StatusOr<ModelParts> Find(const std::string& name, bool begins) override
      ABSL_LOCKS_EXCLUDED(mu_);
  std::vector<std::string> Names() override ABSL_LOCKS_EXCLUDED(mu_);
  std::shared_ptr<const void> HoldJob() override { return held_; }

  // Ends leases and waits that are over, and logs what steps wait for.
  void Tick();

  // Whether a worker has joined one of them, or training of one is known to be over.
  bool AnyHasTrained() const;
  // Whether no training is under way, and nobody holds the job. Of models that were
  // restored, those count that a worker has joined again. In place of a server of the same launch
  // that was killed, all do, and who held the job has the time of a lease to hold it again.
  bool AreOver() const;

  // Ends what training is left. No model is begun any more.
  void Drain();
  // Lets answers that are held fail with `why`; see HostedModel::EndAnswers().
  void EndAnswers(const absl::Status& why);
  // Saves a last checkpoint of each model that has parameters. Called when all calls have ended.
  // Returns the first error; the others are in the log.
  absl::Status SaveLast();
  // See job_outcome.h; of all.
  bool CountersBalance() const;
  // After Drain(): the exit code of the first model that has not ended well, or 0; see
  // job_outcome.h. The log says why.
  int Outcome() const;
  // For the closing table: a line for each.
  std::string ClosingLines() const;

 private:
  struct Model {
    std::unique_ptr<HostedModel> hosted;
    StepWaitLog waits;
    bool used = false;      // a worker has joined, in this process
    bool finished = false;  // all workers had gone when Drain() was called
  };

  static void NoteUse(Model& model);
  absl::Status Begin(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const ServerOptions options_;
  Trace* const trace_;
  const absl::Time begun_ = RealClock().Now();
  std::shared_ptr<const int> held_ = std::make_shared<int>();  // HoldJob() returns copies
  mutable absl::Mutex mu_;
  std::string job_id_ ABSL_GUARDED_BY(mu_);
  bool drains_ ABSL_GUARDED_BY(mu_) = false;
  std::map<std::string, Model> models_ ABSL_GUARDED_BY(mu_);  // by name; none is removed
};

}  // namespace sluice

#endif  // SLUICE_SERVER_NAMED_MODELS_H_
