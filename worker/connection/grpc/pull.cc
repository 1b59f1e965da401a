#include "worker/connection/grpc/pull.h"

#include <glog/logging.h>

#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "common/wire/chunk.h"
#include "common/wire/encoding.h"
#include "common/wire/messages.h"
#include "worker/connection/grpc/call.h"
#include "worker/connection/grpc/parameter_sink.h"
#include "worker/connection/grpc/pull_lane.h"
#include "worker/connection/grpc/stream.h"

namespace sluice {
namespace {

constexpr char kPullRow[] = "pull";  // of the trace
constexpr char kPullParams[] = "/sluice.v1.ParameterServer/PullParams";
constexpr char kPullRows[] = "/sluice.v1.ParameterServer/PullRows";

v1::PullParamsRequest MessageOf(const PullRequest& request, const GrpcPullOptions& options) {
  v1::PullParamsRequest message = ToProto(request);
  if (!options.encoding.plain()) *message.mutable_encoding() = ToProto(options.encoding);
  if (!options.lanes.lanes.empty()) message.set_call_number(options.lanes.name.call_number());
  return message;
}

// A call of PullParams or PullRows.
class GrpcPullCall {
 public:
  // `shared` is null if the parameters are to come through the socket; it outlives the call.
  GrpcPullCall(grpc::GenericStub& stub, const PullRequest& request, SharedParameters* shared,
               const GrpcPullOptions& options)
      : name_("PullParams"),
        request_(request),
        shared_(shared),
        options_(options),
        stream_(stub, kPullParams, options.timeout, options.metadata) {
    v1::PullParamsRequest message = MessageOf(request, options);
    message.set_shared(shared != nullptr);
    stream_.Write(EncodeMessage(message), Follows::kNothing);
  }

  GrpcPullCall(grpc::GenericStub& stub, const PullRequest& request, const std::vector<RowIds>& rows,
               const GrpcPullOptions& options)
      : name_("PullRows"),
        request_(request),
        shared_(nullptr),
        options_(options),
        stream_(stub, kPullRows, options.timeout, options.metadata) {
    v1::PullRowsRequest message;
    *message.mutable_pull() = MessageOf(request, options);
    for (const RowIds& of_table : rows) *message.add_rows() = ToProto(of_table);
    stream_.Write(EncodeMessage(message), Follows::kNothing);
  }

  // As PendingPull::Read.
  absl::StatusOr<PullHeader> Read(const StripeSpan<float>& parameters) {
    absl::StatusOr<PullHeader> header = ReadAll(parameters);
    if (!ended_) stream_.Cancel();  // otherwise a faulty server could send without end
    const grpc::Status finished = stream_.Finish();
    // The server also ends an observer's pull alone, when later ones need its memory.
    const absl::Status end = finished.error_code() == grpc::StatusCode::CANCELLED
                                 ? absl::CancelledError("the server ended the pull")
                                 : EndOf(finished);
    // The server's error explains more than a stream that ends early.
    if (ended_ && !end.ok()) return end;
    return header;
  }

  void Cancel() ABSL_LOCKS_EXCLUDED(mu_) {
    stream_.Cancel();
    absl::MutexLock lock(&mu_);
    cancelled_ = true;
    if (sink_ != nullptr) sink_->Cancel();
  }
  const Transfer& transfer() const { return transfer_; }
  bool wrote() const { return wrote_; }

  // After Read(): not OK if the server's memory could not be read. The call is then repeated
  // through the socket.
  const absl::Status& sharing() const { return sharing_; }

 private:
  bool Next(grpc::ByteBuffer* message) {
    ended_ = !stream_.Read(message);
    return !ended_;
  }

  bool ReadHeader(v1::PullParamsResponse* message) {
    const TraceSpan span(options_.trace, kPullRow, "wait");
    grpc::ByteBuffer bytes;
    return Next(&bytes) && DecodeMessage(bytes, message) && message->has_header();
  }

  absl::StatusOr<PullHeader> ReadAll(const StripeSpan<float>& parameters) {
    GrpcParameterSink sink(name_, parameters, *options_.transforms, options_.trace);
    SetSink(&sink);
    absl::StatusOr<PullHeader> header = ReadInto(sink, parameters);
    SetSink(nullptr);
    wrote_ = wrote_ || sink.wrote();
    return header;
  }

  // The sink that Cancel() ends the wait of.
  void SetSink(GrpcParameterSink* sink) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    sink_ = sink;
    if (sink_ != nullptr && cancelled_) sink_->Cancel();
  }

  // When it returns, no lane writes to the sink any more.
  absl::StatusOr<PullHeader> ReadInto(GrpcParameterSink& sink,
                                      const StripeSpan<float>& parameters) {
    std::vector<std::unique_ptr<GrpcPullLane>> lanes;
    for (const std::shared_ptr<GrpcLane>& lane : options_.lanes.lanes) {
      lanes.push_back(std::make_unique<GrpcPullLane>(lane, options_.lanes.name, options_.timeout,
                                                     options_.metadata, sink));
    }
    v1::PullParamsResponse message;
    if (!ReadHeader(&message)) return UnexpectedMessage(name_, "header");
    const PullHeader header = FromProto(message.header());
    if (options_.offer != nullptr) options_.offer->SetAccepted(message.header().shares_memory());
    const TraceSpan span(options_.trace, kPullRow, "pull", header.step);
    grpc::ByteBuffer bytes;
    if (header.not_modified) {
      if (request_.have_step != header.step) return UnexpectedMessage(name_, "parameters");
      if (Next(&bytes)) return UnexpectedMessage(name_, "end");
      return header;
    }
    if (message.header().has_shared()) {
      if (shared_ == nullptr) return UnexpectedMessage(name_, "chunks");
      const TraceSpan decode(options_.trace, kPullRow, "decode");
      const v1::SharedParameters& where = message.header().shared();
      wrote_ = true;
      sharing_ = shared_->Read(FromProto(where.memory()), where.generation(), parameters);
      if (Next(&bytes)) return UnexpectedMessage(name_, "end");
      return header;
    }
    const absl::Time begin = RealClock().Now();
    while (Next(&bytes)) {
      const absl::Status taken = sink.Take(bytes);
      if (!taken.ok()) return taken;
    }
    const absl::Status complete = sink.AwaitComplete();
    if (!complete.ok()) return complete;
    transfer_ = {sink.bytes(), RealClock().Now() - begin};
    return header;
  }

  const absl::string_view name_;  // of the call, for errors
  const PullRequest request_;
  SharedParameters* const shared_;
  const GrpcPullOptions options_;
  GrpcStream stream_;
  absl::Mutex mu_;
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
  GrpcParameterSink* sink_ ABSL_GUARDED_BY(mu_) = nullptr;  // while the parameters are read
  bool ended_ = false;                                      // by the server
  bool wrote_ = false;                                      // to the parameters
  Transfer transfer_;
  absl::Status sharing_;
};

class GrpcRowPull final : public PendingPull {
 public:
  GrpcRowPull(grpc::GenericStub& stub, const PullRequest& request, const std::vector<RowIds>& rows,
              const GrpcPullOptions& options)
      : call_(stub, request, rows, options) {}

  absl::StatusOr<PullHeader> Read(const StripeSpan<float>& rows) override {
    return call_.Read(rows);
  }
  void Cancel() override { call_.Cancel(); }
  bool wrote() const override { return call_.wrote(); }
  Transfer transfer() const override { return call_.transfer(); }

 private:
  GrpcPullCall call_;
};

class GrpcPull final : public PendingPull {
 public:
  // As GrpcPullCall's constructor; all outlive the pull.
  GrpcPull(grpc::GenericStub& stub, const PullRequest& request, SharedParameters* shared,
           const GrpcPullOptions& options)
      : stub_(stub),
        request_(request),
        options_(options),
        call_(std::make_unique<GrpcPullCall>(stub, request, shared, options)) {}

  absl::StatusOr<PullHeader> Read(const StripeSpan<float>& parameters) override {
    const auto header = call_->Read(parameters);
    if (!header.ok() || call_->sharing().ok()) return header;
    VLOG(1) << "parameters come through the socket: " << call_->sharing().message();
    wrote_ = true;
    if (options_.offer != nullptr) {
      if (!absl::IsAborted(call_->sharing())) options_.offer->GiveUp();
      return absl::DeadlineExceededError(call_->sharing().message());
    }
    StartAgain();
    return call_->Read(parameters);
  }

  void Cancel() override {
    absl::MutexLock lock(&mu_);
    cancelled_ = true;
    call_->Cancel();
  }

  bool wrote() const override { return wrote_ || call_->wrote(); }
  Transfer transfer() const override { return call_->transfer(); }

 private:
  void StartAgain() {
    auto call = std::make_unique<GrpcPullCall>(stub_, request_, nullptr, options_);
    absl::MutexLock lock(&mu_);
    call_ = std::move(call);
    if (cancelled_) call_->Cancel();
  }

  grpc::GenericStub& stub_;
  const PullRequest request_;
  const GrpcPullOptions options_;
  absl::Mutex mu_;  // while call_ is replaced, and while another thread cancels it
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
  std::unique_ptr<GrpcPullCall> call_;
  bool wrote_ = false;  // by an earlier call
};

}  // namespace

std::unique_ptr<PendingPull> StartGrpcPull(grpc::GenericStub& stub, const PullRequest& request,
                                           SharedParameters* shared,
                                           const GrpcPullOptions& options) {
  return std::make_unique<GrpcPull>(stub, request, shared, options);
}

std::unique_ptr<PendingPull> StartGrpcRowPull(grpc::GenericStub& stub, const PullRequest& request,
                                              const std::vector<RowIds>& rows,
                                              const GrpcPullOptions& options) {
  return std::make_unique<GrpcRowPull>(stub, request, rows, options);
}

}  // namespace sluice
