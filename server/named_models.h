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
#include "server/events/job_story.h"
#include "server/hosted_model.h"
#include "server/observe/job_verdict.h"
#include "server/rpc/model_parts.h"
#include "server/server_options.h"
#include "server/step_wait_log.h"

namespace sluice {

// The methods of ModelFinder are for any thread, the others for that of Server::Serve(). No mutex
// is held while a shard is called or a directory is opened.
class NamedModels final : public ModelFinder {
 public:
  static constexpr size_t kMost = 256;  // names

  // `options` are those of the job. `trace`, which may be null, outlives this.
  NamedModels(const ServerOptions& options, Trace* trace);

  // Whether a job with these options may have models with names: one server that never goes back.
  static bool MayHave(const ServerOptions& options);

  // Restores the models that the directory has. `job_id` is that of the job. Called once, first.
  // Errors are those of HostedModel, and name the model.
  absl::Status Restore(const std::string& job_id);

  absl::StatusOr<ModelParts> Find(const std::string& name, bool begins) override
      ABSL_LOCKS_EXCLUDED(begin_mu_, mu_);
  std::vector<NamedShard> Shards() const override ABSL_LOCKS_EXCLUDED(mu_);
  std::shared_ptr<const void> HoldJob() override { return held_; }

  // Ends leases and waits that are over, and logs what steps wait for and what happens to a model.
  void Tick();
  // Logs what is still to be told. Called when all calls have ended.
  void TellEnd();

  // Whether a worker has joined one of them, or training of one is known to be over.
  bool AnyHasTrained() const;
  // Whether no training is under way, and nobody holds the job. A restored model counts as under
  // way only once a worker has joined it again. If this server is started again in the same launch,
  // all of them count; and those who held the job have one lease to call HoldJob again.
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
    std::string name;
    std::unique_ptr<HostedModel> hosted;
    // Only the thread of Server::Serve() uses these.
    StepWaitLog waits;
    JobStory story;
    bool used = false;      // a worker has joined, in this process
    bool finished = false;  // all workers had gone when Drain() was called
  };

  static void NoteUse(Model& model);
  static void Tell(Model& model);
  absl::StatusOr<std::unique_ptr<Model>> Open(const std::string& name) const;
  absl::Status CheckMayBegin(const std::string& name) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Model* Known(const std::string& name) const ABSL_LOCKS_EXCLUDED(mu_);  // or null
  std::vector<Model*> All() const ABSL_LOCKS_EXCLUDED(mu_);              // in the order of names

  const ServerOptions options_;
  Trace* const trace_;
  const absl::Time begun_ = RealClock().Now();
  std::shared_ptr<const int> held_ = std::make_shared<int>();  // HoldJob() returns copies
  std::string job_id_;                                         // set by Restore()
  absl::Mutex begin_mu_ ABSL_ACQUIRED_BEFORE(mu_);             // one model is begun at a time
  mutable absl::Mutex mu_;
  bool drains_ ABSL_GUARDED_BY(mu_) = false;
  std::map<std::string, std::unique_ptr<Model>> models_ ABSL_GUARDED_BY(mu_);  // none is removed
};

}  // namespace sluice

#endif  // SLUICE_SERVER_NAMED_MODELS_H_
