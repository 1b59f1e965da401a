#include "server/rpc/model_services.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/protocol/model_name.h"
#include "common/wire/caller.h"
#include "server/rpc/operator/admin.h"
#include "server/rpc/operator/inspector.h"
#include "server/rpc/parameter_service.h"
#include "sluice/v1/admin.grpc.pb.h"
#include "sluice/v1/inspector.grpc.pb.h"
#include "sluice/v1/parameter_server.grpc.pb.h"

namespace sluice {
namespace {

// The name of the model that the call is for; empty: the one without a name.
std::string ModelOf(const grpc::ServerContextBase& context) {
  const auto found = context.client_metadata().find(kModelKey);
  if (found == context.client_metadata().end()) return "";
  return std::string(found->second.data(), found->second.size());
}

}  // namespace

ModelServices MakeModelServices(const ModelServiceOptions& options, const ModelParts& model) {
  Shard& shard = *model.shard;
  ModelNames names;
  if (options.named != nullptr) names = [named = options.named] { return named->Names(); };
  ModelServices services;
  services[v1::ParameterServer::service_full_name()] = MakeGrpcParameterService(options, model);
  services[v1::Admin::service_full_name()] = MakeGrpcAdmin(shard, *options.watches, model.durable);
  services[v1::Inspector::service_full_name()] =
      MakeGrpcInspector(shard, *options.watches, model.durable, names);
  return services;
}

absl::StatusOr<grpc::Service*> NamedServices::Find(const grpc::ServerContextBase& context,
                                                   const std::string& name, bool joins) {
  const std::string model = ModelOf(context);
  if (model.empty()) return nullptr;
  if (options_.named == nullptr) {
    return MakeError(Reason::kBadArgument, absl::StrCat("the call is for the model \"",
                                                        Shown(model), "\", and ", kHasOneModel));
  }
  const auto parts = options_.named->Find(model, joins && RolesOf(context).Has(Role::kWorker));
  if (absl::IsNotFound(parts.status()) && joins) {
    return MakeError(Reason::kNotInitialized,
                     absl::StrCat(parts.status().message(), "; a worker begins it"));
  }
  if (absl::IsNotFound(parts.status()) && name == v1::ParameterServer::service_full_name()) {
    return MakeError(Reason::kUnknownSession,
                     absl::StrCat(parts.status().message(), "; join again"));
  }
  if (!parts.ok()) return parts.status();
  absl::MutexLock lock(&mu_);
  ModelServices& services = made_[model];
  if (services.empty()) services = MakeModelServices(options_, *parts);
  return services.at(name).get();
}

}  // namespace sluice
