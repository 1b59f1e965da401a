// What the services of a model work on, and how the gRPC server finds the models with names.

#ifndef SLUICE_SERVER_RPC_MODEL_PARTS_H_
#define SLUICE_SERVER_RPC_MODEL_PARTS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/durable/constant_store.h"
#include "server/durable/directory.h"
#include "server/shard/shard.h"

namespace sluice {

// Why a job cannot have several models: the end of a sentence.
inline constexpr char kHasOneModel[] =
    "this job has one model; for several, start one server, and not with --on-divergence=restore";

struct ModelParts {
  Shard* shard;
  DurableDirectory* durable = nullptr;                 // where Admin saves checkpoints, or null
  std::shared_ptr<ConstantStore> constants = nullptr;  // null: none are saved or restored
};

// The models with names of a job that may have several. Any thread may call its methods.
class ModelFinder {
 public:
  virtual ~ModelFinder() = default;

  // Finds a model. If there is none of that name, begins it if `begins`, else fails with NOT_FOUND.
  // BAD_ARGUMENT if the name is none, TOO_MANY_MODELS if there are as many as may be; other errors
  // are those of its directory. A model stays as long as this.
  virtual absl::StatusOr<ModelParts> Find(const std::string& name, bool begins) = 0;

  // The names of all, in ascending order.
  virtual std::vector<std::string> Names() = 0;

  // The job does not end as long as somebody has what this returns.
  virtual std::shared_ptr<const void> HoldJob() = 0;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_MODEL_PARTS_H_
