#include "server/rpc/operator/admin.h"

#include <glog/logging.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/wire/messages.h"
#include "common/wire/refused_stream.h"
#include "common/wire/status.h"
#include "server/operator/operator_commands.h"
#include "server/policy/mode_options.h"
#include "server/rpc/operator/collect_trace.h"
#include "server/rpc/operator/read_logs.h"
#include "sluice/v1/admin.grpc.pb.h"

namespace sluice {
namespace {

using grpc::CallbackServerContext;

// The fields of the request that have no effect in its rules.
std::vector<std::string> Ignored(const v1::Consistency& request, const Consistency& rules) {
  const bool by_steps = rules.mode == ConsistencyMode::kBounded ||
                        rules.mode == ConsistencyMode::kAsync;  // steps wait for no worker
  const bool waits = rules.on_max_step_wait == StepWaitAction::kWait ||
                     (by_steps && rules.on_max_step_wait == StepWaitAction::kEvict);
  std::vector<std::string> ignored;
  if (request.quorum() != 0 && !rules.HasQuorum()) ignored.emplace_back("quorum");
  if (request.has_max_step_wait() && waits) ignored.emplace_back("max_step_wait");
  if (request.on_max_step_wait() != v1::STEP_WAIT_ACTION_UNSPECIFIED &&
      !request.has_max_step_wait()) {
    ignored.emplace_back("on_max_step_wait");
  }
  return ignored;
}

// The rules with the bound of BOUNDED, which is required there, if it is left out.
v1::Consistency WithBound(v1::Consistency rules, uint32_t workers) {
  if (rules.mode() != v1::BOUNDED || rules.has_max_staleness()) return rules;
  rules.set_max_staleness(DefaultMaxStaleness(workers, std::max(rules.quorum(), 1u)));
  return rules;
}

class GrpcAdmin final : public v1::Admin::CallbackService {
 public:
  GrpcAdmin(Shard& shard, OpenWatches& watches, DurableDirectory* durable, const LogRing& log)
      : shard_(shard), watches_(watches), commands_(shard, durable), log_(log) {}

  grpc::ServerUnaryReactor* SetPolicy(CallbackServerContext* context,
                                      const v1::SetPolicyRequest* request,
                                      v1::SetPolicyResponse* response) override {
    return Reply(context, "SetPolicy", [&]() -> absl::Status {
      const ShardStatus state = shard_.Describe();
      const uint32_t workers = std::max(state.workers, state.expected_workers);
      auto consistency = FromProto(WithBound(request->consistency(), workers));
      if (!consistency.ok()) return consistency.status();
      absl::optional<Consistency> expected;
      if (request->has_expected()) {
        const auto seen = FromProto(request->expected());
        if (!seen.ok()) return seen.status();
        expected = *seen;
      }
      const bool any_order = request->consistency().order() == v1::REDUCTION_ORDER_UNSPECIFIED;
      const auto step = shard_.ChangeSettings([&](RuntimeSettings& settings) {
        if (any_order) consistency->order = settings.OrderFor(consistency->mode);
        return settings.Propose(*consistency, expected);
      });
      if (!step.ok()) return step.status();
      response->set_step(step->value());
      *response->mutable_consistency() = ToProto(*consistency);
      for (std::string& field : Ignored(request->consistency(), *consistency)) {
        response->add_ignored(std::move(field));
      }
      return absl::OkStatus();
    });
  }

  grpc::ServerUnaryReactor* SetLearningRate(CallbackServerContext* context,
                                            const v1::SetLearningRateRequest* request,
                                            v1::SetLearningRateResponse* response) override {
    return Reply(context, "SetLearningRate", [&]() -> absl::Status {
      const auto step = commands_.SetLearningRate(
          request->has_learning_rate() ? absl::make_optional(request->learning_rate())
                                       : absl::nullopt);
      if (step.ok()) response->set_step(step->value());
      return step.status();
    });
  }

  grpc::ServerUnaryReactor* EvictWorker(CallbackServerContext* context,
                                        const v1::EvictWorkerRequest* request,
                                        v1::EvictWorkerResponse*) override {
    return Reply(context, "EvictWorker", [&] { return commands_.EvictWorker(request->worker()); });
  }

  grpc::ServerUnaryReactor* SaveCheckpoint(CallbackServerContext* context,
                                           const v1::SaveCheckpointRequest*,
                                           v1::SaveCheckpointResponse* response) override {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    commands_.SaveCheckpoint([=](const absl::StatusOr<SavedCheckpoint>& saved) {
      TellWhoAsked(*context, "SaveCheckpoint", saved.status());
      if (saved.ok()) {
        response->set_step(saved->step.value());
        response->set_path(saved->path);
      }
      reactor->Finish(ToGrpcStatus(saved.status()));
    });
    return reactor;
  }

  grpc::ServerUnaryReactor* Drain(CallbackServerContext* context, const v1::DrainRequest*,
                                  v1::DrainResponse* response) override {
    return Reply(context, "Drain", [&] {
      response->set_step(commands_.Drain().value());
      return absl::OkStatus();
    });
  }

  grpc::ServerWriteReactor<v1::ReadLogsResponse>* ReadLogs(
      CallbackServerContext* /*context*/, const v1::ReadLogsRequest* request) override {
    const absl::Status allowed = CheckReadLogs(*request);
    if (!allowed.ok())
      return new RefusedStream<grpc::ServerWriteReactor<v1::ReadLogsResponse>>(allowed);
    return ServeLogs(*request, log_, watches_);
  }

  grpc::ServerWriteReactor<v1::CollectTraceResponse>* CollectTrace(
      CallbackServerContext* /*context*/, const v1::CollectTraceRequest* request) override {
    absl::Status allowed = CheckCollectTrace(*request);
    if (allowed.ok() && shard_.store().trace() == nullptr) {
      allowed = absl::UnimplementedError("this server records no trace");
    }
    if (!allowed.ok())
      return new RefusedStream<grpc::ServerWriteReactor<v1::CollectTraceResponse>>(allowed);
    return ServeTrace(*request, *shard_.store().trace(), watches_);
  }

 private:
  // What has changed by it, the log tells elsewhere.
  static void TellWhoAsked(const CallbackServerContext& context, const char* call,
                           const absl::Status& outcome) {
    LOG(INFO) << "an operator (" << context.peer() << ") has called " << call
              << (outcome.ok() ? "" : absl::StrCat(" in vain: ", outcome.message()));
  }

  template <typename Act>
  grpc::ServerUnaryReactor* Reply(CallbackServerContext* context, const char* call, Act act) const {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    const absl::Status outcome = act();
    TellWhoAsked(*context, call, outcome);
    reactor->Finish(ToGrpcStatus(outcome));
    return reactor;
  }

  Shard& shard_;
  OpenWatches& watches_;
  OperatorCommands commands_;
  const LogRing& log_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeGrpcAdmin(Shard& shard, OpenWatches& watches,
                                             DurableDirectory* durable, const LogRing& log) {
  return std::make_unique<GrpcAdmin>(shard, watches, durable, log);
}

}  // namespace sluice
