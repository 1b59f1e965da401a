#include "server/rpc/operator/inspector.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/error.h"
#include "common/base/executor.h"
#include "common/base/parallel.h"
#include "common/tensor/stripes.h"
#include "common/wire/messages.h"
#include "common/wire/status.h"
#include "server/rpc/operator/inspector_messages.h"
#include "server/rpc/operator/watch.h"
#include "server/snapshots/striped_tensor.h"
#include "sluice/v1/inspector.grpc.pb.h"

namespace sluice {
namespace {

using grpc::CallbackServerContext;

constexpr uint32_t kMaxPage = 100;
// A page ends before its entries have more bytes, so that each answer stays under 64 KiB: the rest
// is a token with a worker's name. An entry is much smaller.
constexpr size_t kMaxPageBytes = 63 << 10;
constexpr char kAfter[] = "after:";    // and a worker's name: the token of the page that follows it
constexpr uint64_t kAllValues = 16;    // a tensor of at most this size is shown whole
constexpr size_t kMostSummaries = 16;  // of large tensors, at once

grpc::ServerUnaryReactor* Reply(CallbackServerContext* context, const absl::Status& status) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

size_t PageSize(uint32_t asked) { return asked == 0 ? kMaxPage : std::min(asked, kMaxPage); }

absl::Status ForeignToken(const std::string& token) {
  return MakeError(
      Reason::kBadArgument,
      absl::StrCat("page_token \"", Shown(token),
                   "\" does not come from this server; send the next_page_token of its "
                   "last answer, or none for the first page"));
}

// Fills a page until it has `size` entries or kMaxPageBytes.
template <typename Entry>
class Page {
 public:
  Page(size_t size, google::protobuf::RepeatedPtrField<Entry>* entries)
      : size_(size), entries_(*entries) {}

  // False if the page is full; then the entry is not on it.
  bool Add(Entry entry) {
    bytes_ += entry.ByteSizeLong() + kTagAndLength;
    if (entries_.size() == static_cast<int>(size_) || bytes_ > kMaxPageBytes) return false;
    *entries_.Add() = std::move(entry);
    return true;
  }

 private:
  static constexpr size_t kTagAndLength = 4;

  const size_t size_;
  google::protobuf::RepeatedPtrField<Entry>& entries_;
  size_t bytes_ = 0;
};

class GrpcInspector final : public v1::Inspector::CallbackService {
 public:
  GrpcInspector(Shard& shard, OpenWatches& watches, const DurableDirectory* durable)
      : shard_(shard),
        watches_(watches),
        durable_(durable),
        summaries_(*shard.executors().summaries, kMostSummaries) {}

  // Calls are answered before a summary's task has ended.
  ~GrpcInspector() override { shard_.executors().summaries->Drain(); }

  grpc::ServerUnaryReactor* GetServerState(CallbackServerContext* context,
                                           const v1::GetServerStateRequest*,
                                           v1::ServerState* response) override {
    *response = ToProto(shard_.Describe(), durable_);
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
    *response = ServersToProto(shard_.Describe());
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
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    const auto answer = [this, reactor, request, response] {
      reactor->Finish(ToGrpcStatus(AnswerGetParameter(*request, *response)));
    };
    const LayoutRange* const range = Find(request->name());
    if (range == nullptr || range->length <= kPartElements) {
      answer();
    } else if (!summaries_.TryRun(answer)) {
      reactor->Finish(ToGrpcStatus(TooManySummaries()));
    }
    return reactor;
  }

  grpc::ServerWriteReactor<v1::ServerState>* WatchState(
      CallbackServerContext*, const v1::WatchStateRequest* request) override {
    return ServeWatch(*request, shard_, durable_, watches_);
  }

 private:
  // Null if no tensor has that name.
  const LayoutRange* Find(const std::string& name) const {
    const std::shared_ptr<const Layout> layout = shard_.layout();  // never replaced
    return layout == nullptr ? nullptr : layout->Find(name);
  }

  absl::Status TooManySummaries() const {
    return absl::ResourceExhaustedError(
        absl::StrCat(summaries_.most(),
                     " calls wait for statistics of large tensors, the limit; "
                     "call again when one was answered"));
  }

  absl::Status ValuesAreStriped() const {
    return absl::UnimplementedError(
        absl::StrCat("each of the ", shard_.Describe().servers,
                     " servers holds a part of the tensor, and none has its values; an observer "
                     "can pull them from all"));
  }

  absl::Status AnswerListWorkers(const v1::ListWorkersRequest& request,
                                 v1::ListWorkersResponse& response) const {
    absl::string_view after = request.page_token();
    if (!after.empty() && !absl::ConsumePrefix(&after, kAfter)) {
      return ForeignToken(request.page_token());
    }
    const size_t size = PageSize(request.page_size());
    const std::vector<SessionRecord> workers = shard_.WorkersAfter(std::string(after), size + 1);
    const ShardStatus state = shard_.Describe();
    Page<v1::Worker> page(size, response.mutable_workers());
    for (const SessionRecord& worker : workers) {
      if (page.Add(ToProto(worker, state))) continue;
      const v1::Worker& last = response.workers(response.workers_size() - 1);
      response.set_next_page_token(absl::StrCat(kAfter, last.worker()));
      break;
    }
    return absl::OkStatus();
  }

  // A page token is the index of its first entry.
  absl::Status AnswerListParameters(const v1::ListParametersRequest& request,
                                    v1::ListParametersResponse& response) const {
    const std::shared_ptr<const Layout> layout = shard_.layout();
    if (layout == nullptr) return absl::OkStatus();
    const std::vector<LayoutRange>& ranges = layout->ranges();
    uint64_t next = 0;
    const std::string& token = request.page_token();
    if (!token.empty() && (!absl::SimpleAtoi(token, &next) || next > ranges.size())) {
      return ForeignToken(token);
    }
    Page<v1::LayoutRange> page(PageSize(request.page_size()), response.mutable_parameters());
    while (next < ranges.size() && page.Add(sluice::ToProto(ranges[next]))) ++next;
    if (next < ranges.size()) response.set_next_page_token(absl::StrCat(next));
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
                                                       "\"; ListParameters returns the names"));
    }
    if (shard_.is_striped()) return ValuesAreStriped();
    if (request.first() > range->length || request.count() > TensorQuery::kMostValues) {
      return MakeError(Reason::kBadArgument,
                       absl::StrCat("field first is ", request.first(), " and field count is ",
                                    request.count(), "; expected at most ", range->length,
                                    ", the tensor's size, and at most ", TensorQuery::kMostValues));
    }
    *response.mutable_parameter() = sluice::ToProto(*range);
    response.set_step(snapshot->step.value());
    response.set_first(request.first());
    const StripedTensor tensor(*layout, Stripes(layout->size(), 1),
                               QueryOf(request, *layout, *range));
    const std::vector<TensorPart> parts = {tensor.Read(0, snapshot->values.span())};
    *response.mutable_statistics() = ToProto(tensor.Combine(parts));
    for (const float value : tensor.Join(parts)) response.add_values(value);
    return absl::OkStatus();
  }

  static TensorQuery QueryOf(const v1::GetParameterRequest& request, const Layout& layout,
                             const LayoutRange& range) {
    const bool whole = request.count() == 0 && range.length <= kAllValues;
    const uint64_t left = range.length - request.first();
    return {static_cast<uint32_t>(&range - layout.ranges().data()), request.first(),
            whole ? left : std::min<uint64_t>(left, request.count())};
  }

  Shard& shard_;
  OpenWatches& watches_;
  const DurableDirectory* const durable_;  // or null
  BoundedExecutor summaries_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeGrpcInspector(Shard& shard, OpenWatches& watches,
                                                 const DurableDirectory* durable) {
  return std::make_unique<GrpcInspector>(shard, watches, durable);
}

}  // namespace sluice
