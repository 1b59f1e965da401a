// A model that a server holds: its shard, its directory and its constants. A job has one, or
// several with names; see NamedModels.

#ifndef SLUICE_SERVER_HOSTED_MODEL_H_
#define SLUICE_SERVER_HOSTED_MODEL_H_

#include <atomic>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/trace/trace.h"
#include "server/durable/constant_store.h"
#include "server/durable/directory.h"
#include "server/rpc/model_parts.h"
#include "server/server_options.h"
#include "server/shard/shard.h"

namespace sluice {

// Any thread may call its methods, but for those that say otherwise.
class HostedModel {
 public:
  // Opens options.durable.directory, unless that is empty, and takes the incarnation and the job of
  // what is there. Restores nothing yet. `trace`, which may be null, outlives the model. Errors are
  // those of DurableDirectory::Open().
  static absl::StatusOr<std::unique_ptr<HostedModel>> Open(ServerOptions options, Trace* trace);
  // Waits for the work that its calls have begun; there are no calls any more.
  ~HostedModel();

  // Restores what the directory has. Called once, before all calls. Errors are those of
  // sluice::Recover().
  absl::Status Recover();

  // Ends what waits for the model: waits until the journal is on the disk, unless it cannot be
  // written, and lets answers that are still held fail with `why`.
  void EndAnswers(const absl::Status& why);

  // Whether training is over and all workers and observers have gone.
  bool deserted() const { return deserted_; }
  // Whether Drain() or a divergence has ended the training.
  bool drained() const { return drained_; }
  Shard& shard() { return shard_; }
  const Shard& shard() const { return shard_; }
  DurableDirectory* durable() const { return durable_.get(); }  // null if it saves nothing
  ModelParts parts() { return {&shard_, durable_.get(), constants_}; }

 private:
  HostedModel(const ServerOptions& options, std::unique_ptr<DurableDirectory> durable,
              Trace* trace);

  std::atomic<bool> deserted_{false};
  std::atomic<bool> drained_{false};
  Shard shard_;
  // Or null. It tells the shard which steps are durable.
  const std::unique_ptr<DurableDirectory> durable_;
  const std::shared_ptr<ConstantStore> constants_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_HOSTED_MODEL_H_
