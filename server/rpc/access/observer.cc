#include "server/rpc/access/observer.h"

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/wire/chunk.h"
#include "server/rpc/access/rpc_limits.h"
#include "server/rpc/access/tls.h"

namespace sluice {
namespace {

bool MayTrain(const grpc::CallbackServerContext& context) {
  return RolesOf(context).Has(Role::kWorker);
}

absl::Status WrongRole(absl::string_view what) {
  return MakeError(Reason::kWrongRole,
                   absl::StrCat("the caller's certificate has not the role worker; ", what));
}

}  // namespace

absl::Status CheckMayJoin(const grpc::CallbackServerContext& context,
                          const v1::JoinRequest& request, const Shard& shard) {
  if (MayTrain(context)) return absl::OkStatus();
  if (request.role() != v1::OBSERVER) return WrongRole("it may join as an observer only");
  const ObserverPlaces places = shard.PlacesFor(request.worker());
  if (places.is_workers) {
    return WrongRole(absl::StrCat(Shown(request.worker()), " is a worker's name, choose another"));
  }
  if (places.others < RpcLimits::kObservers) return absl::OkStatus();
  return MakeError(Reason::kTooManyWorkers, absl::StrCat("the server has ", places.others,
                                                         " observers, as many as it lets in"));
}

absl::Status CheckMayUse(const grpc::CallbackServerContext& context, SessionId session,
                         const Shard& shard) {
  if (MayTrain(context)) return absl::OkStatus();
  if (!shard.IsWorkers(session)) return absl::OkStatus();
  return WrongRole(absl::StrCat("session ", session.value(), " is a worker's"));
}

absl::StatusOr<PullPermit> CheckMayPull(const grpc::CallbackServerContext& context,
                                        const grpc::ByteBuffer& request, const Shard& shard,
                                        ObserverPulls& pulls) {
  v1::PullParamsRequest pull;
  if (MayTrain(context) || !DecodeMessage(request, &pull)) return PullPermit();
  const SessionId session(pull.session());
  const absl::Status own = CheckMayUse(context, session, shard);
  if (!own.ok()) return own;
  if (pull.has_encoding()) return WrongRole("it pulls parameters as they are, with no encoding");
  return pulls.Begin(session);
}

}  // namespace sluice
