#include "server/rpc/operator/inspector.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/wire/messages.h"
#include "common/wire/status.h"
#include "server/rpc/operator/inspector_messages.h"
#include "server/rpc/operator/watch.h"
#include "server/snapshots/tensor_statistics.h"
#include "sluice/v1/inspector.grpc.pb.h"

namespace sluice {
namespace {

using grpc::CallbackServerContext;

// Keeps the largest answer under 64 KiB: an entry has a name of at most 256 bytes.
constexpr uint32_t kMaxPage = 100;
constexpr uint32_t kMaxValues = 1024;
constexpr uint64_t kAllValues = 16;  // a tensor of at most this size is shown whole

grpc::ServerUnaryReactor* Reply(CallbackServerContext* context, const absl::Status& status) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

struct Page {
  size_t begin = 0;
  size_t end = 0;
  std::string next_token;
};

// A page token is the index of its first entry.
absl::StatusOr<Page> PageOf(size_t total, uint32_t page_size, const std::string& token) {
  uint64_t begin = 0;
  if (!token.empty() && (!absl::SimpleAtoi(token, &begin) || begin > total)) {
    return MakeError(Reason::kBadArgument, absl::StrCat("page_token \"", Shown(token),
                                                        "\" is none that this server gave"));
  }
  const size_t size = page_size == 0 ? kMaxPage : std::min(page_size, kMaxPage);
  Page page;
  page.begin = begin;
  page.end = std::min(total, page.begin + size);
  if (page.end < total) page.next_token = absl::StrCat(page.end);
  return page;
}

class GrpcInspector final : public v1::Inspector::CallbackService {
 public:
  GrpcInspector(const Shard& shard, OpenWatches& watches) : shard_(shard), watches_(watches) {}

  grpc::ServerUnaryReactor* GetServerState(CallbackServerContext* context,
                                           const v1::GetServerStateRequest*,
                                           v1::ServerState* response) override {
    *response = ToProto(shard_.Describe());
    return Reply(context, absl::OkStatus());
  }

  grpc::ServerUnaryReactor* ListWorkers(CallbackServerContext* context,
                                        const v1::ListWorkersRequest* request,
                                        v1::ListWorkersResponse* response) override {
    return Reply(context, AnswerListWorkers(*request, *response));
  }

  grpc::ServerUnaryReactor* ListParameters(CallbackServerContext* context,
                                           const v1::ListParametersRequest* request,
                                           v1::ListParametersResponse* response) override {
    return Reply(context, AnswerListParameters(*request, *response));
  }

  grpc::ServerUnaryReactor* GetParameter(CallbackServerContext* context,
                                         const v1::GetParameterRequest* request,
                                         v1::GetParameterResponse* response) override {
    return Reply(context, AnswerGetParameter(*request, *response));
  }

  grpc::ServerWriteReactor<v1::ServerState>* WatchState(
      CallbackServerContext*, const v1::WatchStateRequest* request) override {
    return ServeWatch(*request, shard_, watches_);
  }

 private:
  absl::Status AnswerListWorkers(const v1::ListWorkersRequest& request,
                                 v1::ListWorkersResponse& response) const {
    std::vector<SessionRecord> workers = shard_.Sessions();
    workers.erase(
        std::remove_if(workers.begin(), workers.end(),
                       [](const SessionRecord& r) { return r.role != SessionRole::kWorker; }),
        workers.end());
    const auto page = PageOf(workers.size(), request.page_size(), request.page_token());
    if (!page.ok()) return page.status();
    const ShardStatus state = shard_.Describe();
    for (size_t i = page->begin; i < page->end; ++i) {
      *response.add_workers() = ToProto(workers[i], state);
    }
    response.set_next_page_token(page->next_token);
    return absl::OkStatus();
  }

  absl::Status AnswerListParameters(const v1::ListParametersRequest& request,
                                    v1::ListParametersResponse& response) const {
    const std::shared_ptr<const Layout> layout = shard_.layout();
    if (layout == nullptr) return absl::OkStatus();
    const std::vector<LayoutRange>& ranges = layout->ranges();
    const auto page = PageOf(ranges.size(), request.page_size(), request.page_token());
    if (!page.ok()) return page.status();
    for (size_t i = page->begin; i < page->end; ++i) {
      *response.add_parameters() = sluice::ToProto(ranges[i]);
    }
    response.set_next_page_token(page->next_token);
    response.set_total(ranges.size());
    return absl::OkStatus();
  }

  absl::Status AnswerGetParameter(const v1::GetParameterRequest& request,
                                  v1::GetParameterResponse& response) const {
    const std::shared_ptr<const Layout> layout = shard_.layout();
    const std::shared_ptr<const Snapshot> snapshot = shard_.snapshot();
    if (layout == nullptr || snapshot == nullptr) {
      return MakeError(Reason::kNotInitialized, "the server has no parameters yet");
    }
    const LayoutRange* const range = layout->Find(request.name());
    if (range == nullptr) {
      return MakeError(Reason::kNotFound, absl::StrCat("no parameter \"", Shown(request.name()),
                                                       "\"; ListParameters names those there are"));
    }
    const absl::Span<const float> values =
        snapshot->values.span().subspan(range->offset, range->length);
    *response.mutable_parameter() = sluice::ToProto(*range);
    response.set_step(snapshot->step.value());
    *response.mutable_statistics() = ToProto(Summarize(values));
    return AddValues(request, values, response);
  }

  static absl::Status AddValues(const v1::GetParameterRequest& request,
                                absl::Span<const float> values,
                                v1::GetParameterResponse& response) {
    if (request.first() > values.size() || request.count() > kMaxValues) {
      return MakeError(Reason::kBadArgument,
                       absl::StrCat("values ", request.first(), " and ", request.count(),
                                    " on were asked for, the tensor has ", values.size(),
                                    " and an answer holds at most ", kMaxValues));
    }
    const bool whole = request.count() == 0 && values.size() <= kAllValues;
    for (const float value :
         values.subspan(request.first(), whole ? kAllValues : request.count())) {
      response.add_values(value);
    }
    response.set_first(request.first());
    return absl::OkStatus();
  }

  const Shard& shard_;
  OpenWatches& watches_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeGrpcInspector(const Shard& shard, OpenWatches& watches) {
  return std::make_unique<GrpcInspector>(shard, watches);
}

}  // namespace sluice
