#include "server/rpc/access/method_roles.h"

#include "absl/strings/str_cat.h"
#include "common/base/error.h"

namespace sluice {
namespace {

struct Entry {
  absl::string_view method;
  Roles roles;
};

constexpr Roles kTraining = Role::kWorker;
constexpr Roles kSession = Roles(Role::kWorker) | Role::kObserver;  // see also GrpcParameterService
constexpr Roles kLook = Roles(Role::kWorker) | Role::kObserver | Role::kAdmin;
constexpr Roles kChange = Role::kAdmin;
constexpr Roles kFollow = Role::kServer;

constexpr Entry kTable[] = {
    {"/sluice.v1.ParameterServer/Join", kSession},
    {"/sluice.v1.ParameterServer/JoinInParts", kSession},
    {"/sluice.v1.ParameterServer/Heartbeat", kSession},
    {"/sluice.v1.ParameterServer/InitializeParams", kTraining},
    {"/sluice.v1.ParameterServer/OfferConstants", kTraining},
    {"/sluice.v1.ParameterServer/PullConstants", kSession},
    {"/sluice.v1.ParameterServer/PullState", kTraining},
    {"/sluice.v1.ParameterServer/OfferState", kTraining},
    {"/sluice.v1.ParameterServer/PushGradients", kTraining},
    {"/sluice.v1.ParameterServer/PullParams", kSession},
    {"/sluice.v1.ParameterServer/PushPull", kTraining},
    {"/sluice.v1.ParameterServer/PullRows", kSession},
    {"/sluice.v1.ParameterServer/PushLane", kTraining},
    {"/sluice.v1.ParameterServer/PullLane", kTraining},
    {"/sluice.v1.ParameterServer/Leave", kSession},
    {"/sluice.v1.ParameterServer/HoldJob", kTraining},
    {"/sluice.v1.ParameterServer/PullSlots", kTraining},
    {"/sluice.v1.ParameterServer/AllGather", kTraining},
    {"/sluice.v1.Sequencer/Follow", kFollow},
    {"/sluice.v1.Inspector/GetServerState", kLook},
    {"/sluice.v1.Inspector/ListWorkers", kLook},
    {"/sluice.v1.Inspector/ListServers", kLook},
    {"/sluice.v1.Inspector/ListParameters", kLook},
    {"/sluice.v1.Inspector/GetParameter", kLook},
    {"/sluice.v1.Inspector/ListTables", kLook},
    {"/sluice.v1.Inspector/GetRow", kLook},
    {"/sluice.v1.Inspector/WatchState", kLook},
    {"/sluice.v1.Inspector/ListModels", kLook},
    {"/sluice.v1.Admin/SetPolicy", kChange},
    {"/sluice.v1.Admin/SetLearningRate", kChange},
    {"/sluice.v1.Admin/EvictWorker", kChange},
    {"/sluice.v1.Admin/Drain", kChange},
    {"/sluice.v1.Admin/SaveCheckpoint", kChange},
    {"/sluice.v1.Admin/ReadLogs", kChange},
    {"/sluice.v1.Admin/CollectTrace", kChange},
    {"/grpc.health.v1.Health/Check", kLook},
    {"/grpc.health.v1.Health/Watch", kLook},
    {"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", kLook},
    {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", kLook},
};

}  // namespace

Roles RolesThatMayCall(absl::string_view method) {
  for (const Entry& entry : kTable) {
    if (entry.method == method) return entry.roles;
  }
  return Roles();
}

absl::Status NoSuchMethod(absl::string_view method) {
  return absl::UnimplementedError(absl::StrCat("the server has no method ", Shown(method)));
}

absl::Status CheckMay(Roles caller, absl::string_view method, Roles may_call) {
  if (caller.Meet(may_call)) return absl::OkStatus();
  if (may_call.empty()) return NoSuchMethod(method);
  const std::string has =
      caller.empty() ? absl::StrCat("no role among its alternative names, such as the URI ",
                                    RoleUri(Role::kWorker))
                     : absl::StrCat("the role ", caller.ToString());
  return MakeError(Reason::kWrongRole,
                   absl::StrCat("the caller's certificate has ", has, "; ", Shown(method),
                                " needs the role ", may_call.ToString()));
}

}  // namespace sluice
