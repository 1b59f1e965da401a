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

bool Has(const grpc::ServerContextBase& context, const char* key) {
  return context.client_metadata().count(key) > 0;
}

// The name of the model that the call is for; empty: the one without a name.
std::string ModelOf(const grpc::ServerContextBase& context) {
  const auto found = context.client_metadata().find(kModelKey);
  if (found == context.client_metadata().end()) return "";
  return std::string(found->second.data(), found->second.size());
}

// The error of a call of `service` that has not found its model, as callers of that expect it.
absl::Status WhyNotFound(const absl::Status& error, const std::string& service, bool joins) {
  if (ReasonOf(error) != Reason::kNotFound) return error;
  if (joins) {
    return MakeError(Reason::kNotInitialized,
                     absl::StrCat(error.message(), "; a worker begins it"));
  }
  if (service != v1::ParameterServer::service_full_name()) return error;
  return MakeError(Reason::kUnknownSession, absl::StrCat(error.message(), "; join again"));
}

}  // namespace

ModelServices MakeModelServices(const ModelServiceOptions& options, const ModelParts& model) {
  Shard& shard = *model.shard;
  NamedShards named;
  if (options.named != nullptr) named = [finder = options.named] { return finder->Shards(); };
  ModelServices services;
  services[v1::ParameterServer::service_full_name()] = MakeGrpcParameterService(options, model);
  services[v1::Admin::service_full_name()] =
      MakeGrpcAdmin(shard, *options.watches, model.durable, *options.log);
  services[v1::Inspector::service_full_name()] =
      MakeGrpcInspector(shard, *options.watches, model.durable, named, model.has_name);
  return services;
}

absl::StatusOr<grpc::Service*> NamedServices::Find(const grpc::ServerContextBase& context,
                                                   const std::string& name, bool joins) {
  const std::string model = ModelOf(context);
  if (model.empty()) return nullptr;
  {
    absl::MutexLock lock(&mu_);
    const auto made = made_.find(model);
    if (made != made_.end()) return made->second.at(name).get();
  }
  if (options_.named == nullptr) {
    return MakeError(Reason::kBadArgument, absl::StrCat("the call is for the model \"",
                                                        Shown(model), "\", and ", kHasOneModel));
  }
  const bool begins = joins && Has(context, kBeginsModelKey) && RolesOf(context).Has(Role::kWorker);
  const auto parts = options_.named->Find(model, begins);
  if (!parts.ok()) return WhyNotFound(parts.status(), name, joins);
  absl::MutexLock lock(&mu_);
  ModelServices& services = made_[model];  // two calls may have come at once
  if (services.empty()) services = MakeModelServices(options_, *parts);
  return services.at(name).get();
}

}  // namespace sluice
