// What the services of a model work on, and how the gRPC server finds the models with names.

#ifndef SLUICE_SERVER_RPC_MODEL_PARTS_H_
#define SLUICE_SERVER_RPC_MODEL_PARTS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/durable/constant_store.h"
#include "server/durable/directory.h"
#include "server/observe/job_verdict.h"
#include "server/shard/shard.h"

namespace sluice {

// Why a job cannot have several models: the end of a sentence.
inline constexpr char kHasOneModel[] =
    "this job has one model; for several, start one server, and not with --on-divergence=restore";

struct ModelParts {
  Shard* shard;
  DurableDirectory* durable = nullptr;                 // where Admin saves checkpoints, or null
  std::shared_ptr<ConstantStore> constants = nullptr;  // null: none are saved or restored
  bool has_name = false;
};

// Finds the named models of a job that may have several models. Any thread may call its methods.
class ModelFinder {
 public:
  virtual ~ModelFinder() = default;

  // Returns the model of that name. If there is none: begins it if `begins`, or else returns
  // NOT_FOUND. Other errors: BAD_ARGUMENT if the name breaks the rules of names; TOO_MANY_MODELS;
  // DRAINING; and those of the directory of a new model. A model lives as long as this object.
  virtual absl::StatusOr<ModelParts> Find(const std::string& name, bool begins) = 0;

  // Returns the named models, in ascending order of names. A model that no worker has joined has no
  // layout.
  virtual std::vector<NamedShard> Shards() const = 0;

  // The job does not end while somebody holds the returned pointer.
  virtual std::shared_ptr<const void> HoldJob() = 0;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_MODEL_PARTS_H_
