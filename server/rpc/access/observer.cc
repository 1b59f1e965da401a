#include "server/rpc/access/observer.h"

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/wire/caller.h"
#include "common/wire/chunk.h"
#include "server/rpc/access/rpc_limits.h"

namespace sluice {
namespace {

absl::Status WrongRole(absl::string_view what) {
  return MakeError(Reason::kWrongRole,
                   absl::StrCat("the caller's certificate does not have the role worker; ", what));
}

absl::Status CheckObserverPulls(const grpc::CallbackServerContext& context,
                                const v1::PullParamsRequest& pull, const SessionOwners& owners) {
  const absl::Status own = CheckMayUse(context, SessionId(pull.session()), owners);
  if (!own.ok()) return own;
  if (pull.has_encoding()) return WrongRole("its pulls may not choose an encoding");
  return absl::OkStatus();
}

}  // namespace

bool MayTrain(const grpc::CallbackServerContext& context) {
  return RolesOf(context).Has(Role::kWorker);
}

absl::Status CheckMayJoin(const grpc::CallbackServerContext& context,
                          const v1::JoinRequest& request, const Shard& shard) {
  if (MayTrain(context)) return absl::OkStatus();
  if (request.role() != v1::OBSERVER) return WrongRole("it may join as an observer only");
  ObserverPlaces places;
  shard.ReadSessions(
      [&](const SessionRecords& records) { places = PlacesFor(request.worker(), records); });
  if (places.is_workers) {
    return WrongRole(absl::StrCat(Shown(request.worker()), " is a worker's name; choose another"));
  }
  if (places.holder.has_value() && places.holder->value() != request.process_nonce()) {
    return WrongRole(absl::StrCat(Shown(request.worker()),
                                  " is the name of another process whose session is open; choose "
                                  "another, or wait until that session has ended"));
  }
  if (places.others < RpcLimits::kObservers) return absl::OkStatus();
  return MakeError(Reason::kTooManyWorkers,
                   absl::StrCat("the server has ", places.others,
                                " observers, its limit; join when one has left"));
}

absl::Status CheckMayUse(const grpc::CallbackServerContext& context, SessionId session,
                         const SessionOwners& owners) {
  if (MayTrain(context)) return absl::OkStatus();
  return owners.CheckObserves(session, context.peer());
}

absl::Status CheckMayPull(const grpc::CallbackServerContext& context,
                          const grpc::ByteBuffer& request, const SessionOwners& owners) {
  v1::PullParamsRequest pull;
  if (MayTrain(context) || !DecodeMessage(request, &pull)) return absl::OkStatus();
  return CheckObserverPulls(context, pull, owners);
}

absl::Status CheckMayPullRows(const grpc::CallbackServerContext& context,
                              const grpc::ByteBuffer& request, const SessionOwners& owners) {
  v1::PullRowsRequest pull;
  if (MayTrain(context) || !DecodeMessage(request, &pull)) return absl::OkStatus();
  return CheckObserverPulls(context, pull.pull(), owners);
}

absl::Status CheckMayReport(const grpc::CallbackServerContext& context,
                            const v1::LeaveRequest& request) {
  if (MayTrain(context) || request.results().empty()) return absl::OkStatus();
  return WrongRole("it may not report results");
}

absl::Status CheckMayReport(const grpc::CallbackServerContext& context,
                            const v1::HeartbeatRequest& request) {
  if (MayTrain(context) || !request.has_measurement()) return absl::OkStatus();
  return WrongRole("it may not report results");
}

}  // namespace sluice
