// The services of a model, and how a call finds those of the model that it is for.

#ifndef SLUICE_SERVER_RPC_MODEL_SERVICES_H_
#define SLUICE_SERVER_RPC_MODEL_SERVICES_H_

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/service_type.h>

#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/encoding/transforms/builtin_transforms.h"
#include "server/operator/log_ring.h"
#include "server/rpc/model_parts.h"
#include "server/rpc/operator/open_watches.h"
#include "server/rpc/session_resources.h"

namespace sluice {

// What the services of all models of a gRPC server have in common. All that it points to outlives
// them.
struct ModelServiceOptions {
  TransformRegistry transforms = BuiltinTransforms();
  absl::Duration join_time;  // in which the parts of a request to join must come
  OpenWatches* watches;
  ModelFinder* named = nullptr;  // null: the job cannot have several models
  JobServers servers = nullptr;  // null: there is one server
  std::shared_ptr<const LogRing> log = std::make_shared<LogRing>();  // that Admin reads
};

// By their full names: ParameterServer, Inspector and Admin.
using ModelServices = std::map<std::string, std::unique_ptr<grpc::Service>>;
ModelServices MakeModelServices(const ModelServiceOptions& options, const ModelParts& model);

// Makes and keeps the services of the named models. Any thread may use it.
class NamedServices {
 public:
  explicit NamedServices(ModelServiceOptions options) : options_(std::move(options)) {}

  // Returns the service `name` of the model that the call names in its metadata; null if it names
  // none. `joins`: the call is a Join or JoinInParts. A Join begins the model if it asks for that
  // and its caller has the role worker. If there is no such model: NOT_INITIALIZED for a Join,
  // UNKNOWN_SESSION for other calls of ParameterServer, NOT_FOUND for other services. Other errors
  // are those of ModelFinder.
  absl::StatusOr<grpc::Service*> Find(const grpc::ServerContextBase& context,
                                      const std::string& name, bool joins) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const ModelServiceOptions options_;
  absl::Mutex mu_;
  std::map<std::string, ModelServices> made_ ABSL_GUARDED_BY(mu_);  // by the model's name
};

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_MODEL_SERVICES_H_
