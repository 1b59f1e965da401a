#include "server/rpc/operator/inspector.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/error.h"
#include "common/wire/messages.h"
#include "common/wire/status.h"
#include "server/observe/server_state.h"
#include "server/rpc/operator/get_row.h"
#include "server/rpc/operator/page.h"
#include "server/rpc/operator/watch.h"
#include "server/snapshots/striped_tensor.h"
#include "sluice/v1/inspector.grpc.pb.h"

namespace sluice {
namespace {

using grpc::CallbackServerContext;

constexpr char kAfter[] = "after:";  // and a worker's name: the token of the page that follows it
constexpr uint64_t kAllValues = 16;  // a tensor of at most this size is shown whole

grpc::ServerUnaryReactor* Reply(CallbackServerContext* context, const absl::Status& status) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

v1::TensorStatistics StatisticsToProto(const TensorStatistics& statistics) {
  v1::TensorStatistics message;
  message.set_min(statistics.min);
  message.set_max(statistics.max);
  message.set_mean(statistics.mean);
  message.set_standard_deviation(statistics.standard_deviation);
  message.set_l2_norm(statistics.l2_norm);
  message.set_zero_share(statistics.zero_share);
  return message;
}

class GrpcInspector final : public v1::Inspector::CallbackService {
 public:
  GrpcInspector(Shard& shard, OpenWatches& watches, const DurableDirectory* durable,
                NamedShards models, bool has_name)
      : shard_(shard),
        watches_(watches),
        durable_(durable),
        models_(std::move(models)),
        has_name_(has_name) {}

  grpc::ServerUnaryReactor* GetServerState(CallbackServerContext* context,
                                           const v1::GetServerStateRequest*,
                                           v1::ServerState* response) override {
    *response = State();
    return Reply(context, absl::OkStatus());
  }

  grpc::ServerUnaryReactor* ListModels(CallbackServerContext* context, const v1::ListModelsRequest*,
                                       v1::ListModelsResponse* response) override {
    for (NamedShard& model : models_ ? models_() : std::vector<NamedShard>()) {
      if (model.shard->layout() != nullptr) response->add_names(std::move(model.name));
    }
    return Reply(context, absl::OkStatus());
  }

  grpc::ServerUnaryReactor* ListWorkers(CallbackServerContext* context,
                                        const v1::ListWorkersRequest* request,
                                        v1::ListWorkersResponse* response) override {
    return Reply(context, AnswerListWorkers(*request, *response));
  }

  grpc::ServerUnaryReactor* ListServers(CallbackServerContext* context,
                                        const v1::ListServersRequest*,
                                        v1::ListServersResponse* response) override {
    for (v1::Server& server : ServersToProto(shard_.Describe())) {
      *response->add_servers() = std::move(server);
    }
    return Reply(context, absl::OkStatus());
  }

  grpc::ServerUnaryReactor* ListParameters(CallbackServerContext* context,
                                           const v1::ListParametersRequest* request,
                                           v1::ListParametersResponse* response) override {
    return Reply(context, AnswerListParameters(*request, *response));
  }

  grpc::ServerUnaryReactor* GetParameter(CallbackServerContext* context,
                                         const v1::GetParameterRequest* request,
                                         v1::GetParameterResponse* response) override {
    const absl::StatusOr<TensorQuery> query = ReadGetParameter(*request, *response);
    if (!query.ok()) return Reply(context, query.status());
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    shard_.Summarize(*query, [reactor, response](const absl::StatusOr<TensorSummary>& summary) {
      if (summary.ok()) Put(*summary, *response);
      reactor->Finish(ToGrpcStatus(summary.status()));
    });
    return reactor;
  }

  grpc::ServerUnaryReactor* ListTables(CallbackServerContext* context,
                                       const v1::ListTablesRequest* request,
                                       v1::ListTablesResponse* response) override {
    return Reply(context, AnswerListTables(*request, *response));
  }

  grpc::ServerUnaryReactor* GetRow(CallbackServerContext* context, const v1::GetRowRequest* request,
                                   v1::GetRowResponse* response) override {
    return Reply(context, AnswerGetRow(*request, shard_.store().stripe().rows(), *response));
  }

  grpc::ServerWriteReactor<v1::ServerState>* WatchState(
      CallbackServerContext*, const v1::WatchStateRequest* request) override {
    return ServeWatch(
        *request, [this] { return State(); }, watches_);
  }

 private:
  absl::Status AnswerListWorkers(const v1::ListWorkersRequest& request,
                                 v1::ListWorkersResponse& response) const {
    absl::string_view after = request.page_token();
    if (!after.empty() && !absl::ConsumePrefix(&after, kAfter)) {
      return ForeignToken(request.page_token());
    }
    const size_t size = PageSize(request.page_size());
    std::vector<SessionRecord> workers;
    shard_.ReadSessions([&](const SessionRecords& records) {
      workers = WorkersAfter(std::string(after), records, size + 1);
    });
    const ShardStatus state = shard_.Describe();
    const std::set<SessionId> pulling = PullingFrom(shard_, state);
    Page<v1::Worker> page(size, response.mutable_workers());
    for (const SessionRecord& worker : workers) {
      if (page.Add(ToProto(worker, state, pulling))) continue;
      const v1::Worker& last = response.workers(response.workers_size() - 1);
      response.set_next_page_token(absl::StrCat(kAfter, last.worker()));
      break;
    }
    return absl::OkStatus();
  }

  absl::Status AnswerListParameters(const v1::ListParametersRequest& request,
                                    v1::ListParametersResponse& response) const {
    const std::shared_ptr<const Layout> layout = shard_.layout();
    if (layout == nullptr) return absl::OkStatus();
    const std::vector<LayoutRange>& ranges = layout->ranges();
    response.set_total(ranges.size());
    return FillPage(request, ranges.size(), response.mutable_parameters(), response,
                    [&](size_t i) { return sluice::ToProto(ranges[i]); });
  }

  absl::Status AnswerListTables(const v1::ListTablesRequest& request,
                                v1::ListTablesResponse& response) const {
    const std::vector<v1::TableState> tables = TablesToProto(shard_.Describe());
    response.set_total(tables.size());
    return FillPage(request, tables.size(), response.mutable_tables(), response,
                    [&](size_t i) { return tables[i]; });
  }

  // Which tensor the response, whose other fields it sets, is to show.
  absl::StatusOr<TensorQuery> ReadGetParameter(const v1::GetParameterRequest& request,
                                               v1::GetParameterResponse& response) const {
    const std::shared_ptr<const Layout> layout = shard_.layout();  // never replaced
    if (layout == nullptr || shard_.store().stripe().latest() == nullptr) {
      return MakeError(Reason::kNotInitialized, "the server has no parameters yet");
    }
    const LayoutRange* const range = layout->Find(request.name());
    if (range == nullptr) {
      return MakeError(Reason::kNotFound, absl::StrCat("no parameter \"", Shown(request.name()),
                                                       "\"; ListParameters returns the names"));
    }
    if (request.first() > range->length || request.count() > TensorQuery::kMostValues) {
      return MakeError(Reason::kBadArgument,
                       absl::StrCat("field first is ", request.first(), " and field count is ",
                                    request.count(), "; expected at most ", range->length,
                                    ", the tensor's size, and at most ", TensorQuery::kMostValues));
    }
    *response.mutable_parameter() = sluice::ToProto(*range);
    response.set_first(request.first());
    const bool whole = request.count() == 0 && range->length <= kAllValues;
    const uint64_t left = range->length - request.first();
    return TensorQuery{static_cast<uint32_t>(range - layout->ranges().data()), request.first(),
                       whole ? left : std::min<uint64_t>(left, request.count())};
  }

  static void Put(const TensorSummary& summary, v1::GetParameterResponse& response) {
    response.set_step(summary.step.value());
    *response.mutable_statistics() = StatisticsToProto(summary.statistics);
    response.mutable_values()->Add(summary.values.begin(), summary.values.end());
  }

  v1::ServerState State() const {
    v1::ServerState state = ToProto(shard_.Describe(), shard_, durable_);
    if (!has_name_) JudgeJob(models_, &state);
    return state;
  }

  Shard& shard_;
  OpenWatches& watches_;
  const DurableDirectory* const durable_;  // or null
  const NamedShards models_;               // or null
  const bool has_name_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeGrpcInspector(Shard& shard, OpenWatches& watches,
                                                 const DurableDirectory* durable,
                                                 NamedShards models, bool has_name) {
  return std::make_unique<GrpcInspector>(shard, watches, durable, std::move(models), has_name);
}

}  // namespace sluice
