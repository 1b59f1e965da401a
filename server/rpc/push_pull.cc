#include "server/rpc/push_pull.h"

#include <atomic>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/base/error.h"
#include "common/wire/chunk.h"
#include "common/wire/messages.h"
#include "common/wire/status.h"
#include "server/aggregation/gathered_push.h"
#include "server/rpc/arrived_chunk.h"
#include "server/rpc/call_wait.h"
#include "server/shard/call_span.h"

namespace sluice {
namespace {

absl::Status CheckFits(const ParameterStore& store, size_t bytes) {
  const std::shared_ptr<const Layout> layout = store.stripe().layout();
  if (layout == nullptr) return MakeError(Reason::kNotInitialized, "the server has no model yet");
  const uint64_t size = layout->size();
  const bool fits = size <= kMostPushPullElements && bytes <= kMostPushPullBytes;
  if (fits && !store.is_striped()) return absl::OkStatus();
  return MakeError(
      Reason::kBadArgument,
      absl::StrCat("PushPull came with ", bytes, " bytes, for a model of ", size, " elements on ",
                   store.is_striped() ? "several servers" : "one server", "; it takes at most ",
                   kMostPushPullBytes, " bytes, for at most ", kMostPushPullElements,
                   " elements on one server; call PushGradients and PullParams instead"));
}

// Waits at its header, then perhaps until its step is durable, then for the parameters.
class PushPullCall final : public grpc::ServerReadReactor<grpc::ByteBuffer>,
                           public std::enable_shared_from_this<PushPullCall> {
 public:
  PushPullCall(grpc::CallbackServerContext& context, grpc::ByteBuffer* response, PullLimits& limits,
               SnapshotChunks& chunks, const SharedMemories& memories,
               const TransformRegistry& transforms, ParameterStore& store)
      : response_(response),
        limits_(limits),
        chunks_(chunks),
        memories_(memories),
        transforms_(transforms),
        store_(store),
        checksums_(ChecksumsFor(context.peer())),
        push_wait_([&store](PushId id) { return store.CancelPush(id); }),
        pull_wait_([&store](PullId id) { return store.CancelPull(id); }) {}

  void Start() {
    self_ = shared_from_this();
    StartRead(&message_);
  }

  // The only message. The work is done here, and not in Start(), since gRPC sends no answer before
  // that has returned, and this thread may go on to make steps for others.
  void OnReadDone(bool ok) override {
    const PushId id = store_.BeginPush(
        ok ? Read() : NoHeader(),
        [this](absl::StatusOr<PushStart> start) { GoOn(std::move(start)); }, nullptr);
    beginning_ = false;
    if (push_wait_.Begin(id)) Finish(grpc::Status::CANCELLED);
  }

  // If two threads notice that the call is cancelled while it waits, one of them ends it.
  void OnCancel() override {
    if (push_wait_.Cancel()) Finish(grpc::Status::CANCELLED);
    if (pull_wait_.Cancel()) Finish(grpc::Status::CANCELLED);
  }

  void OnDone() override {
    sending_.reset();
    self_.reset();
  }

 private:
  // Keeps of the message what is needed later.
  absl::StatusOr<PushHeader> Read() {
    store_.wire_bytes().AddReceived(message_.Length());
    const absl::Status fits = CheckFits(store_, message_.Length());
    if (!fits.ok()) return fits;
    v1::PushPullRequest message;
    if (!DecodeMessage(message_, &message) || !message.has_push()) return NoHeader();
    message_.Clear();
    auto header = FromProto(message.push());
    if (!header.ok()) return header;
    gradient_bytes_ = message.gradient().ByteSizeLong();
    gradient_ = TakeChunk(message.mutable_gradient());
    request_ = FromProto(message.pull());
    request_.session = header->session;
    request_.after = header->sequence;
    auto permit = limits_.Permit(request_.session);
    if (!permit.ok()) return permit.status();
    permit_ = *std::move(permit);
    return header;
  }

  static absl::Status NoHeader() {
    return MakeError(Reason::kMissingHeader,
                     "the call has no message that is a valid PushPullRequest with a header");
  }

  // A thread that lets in pushes that have waited must not do the work of all of them.
  void GoOn(absl::StatusOr<PushStart> start) {
    if (!start.ok()) {
      Finish(ToGrpcStatus(start.status()));
    } else if (start->push == nullptr) {
      gradient_ = TensorChunk();
      Pull(start->answer);
    } else if (beginning_) {
      Push(std::move(start->push));
    } else {
      const auto held = std::make_shared<std::unique_ptr<PendingPush>>(std::move(start->push));
      store_.executors().arrivals->Run([this, held] { Push(std::move(*held)); });
    }
  }

  void Push(std::unique_ptr<PendingPush> begun) {
    const std::shared_ptr<PushPullCall> self = shared_from_this();
    span_.Begin(store_, "push", request_.session, begun->header().step);
    GatheredPush gathering(std::move(begun), transforms_, store_.parallel());
    Take(gathering);
    GatheredPush::Gathered gathered = gathering.End();
    span_.End();
    const PushCallback done = [this](const absl::StatusOr<PushOutcome>& outcome) { Pull(outcome); };
    if (gathered.error.ok()) {
      store_.FinishPush(std::move(gathered.push), done);  // no other server has a part
    } else {
      store_.RefusePush(std::move(gathered.push), gathered.error, done);
    }
  }

  void Take(GatheredPush& push) {
    absl::StatusOr<TensorChunk> chunk =
        OfStripe(push.layout(), std::exchange(gradient_, TensorChunk()));
    const ArrivedChunk arrived(chunk, gradient_bytes_);
    if (push.Add(std::move(chunk))) arrived.Count(store_.wire_bytes());
  }

  // The call may end on another thread before this returns.
  void Pull(const absl::StatusOr<PushOutcome>& outcome) {
    if (!outcome.ok()) {
      Finish(ToGrpcStatus(outcome.status()));
      return;
    }
    const std::shared_ptr<PushPullCall> self = shared_from_this();
    outcome_ = *outcome;
    const PullId id =
        store_.Pull(request_, [this](const absl::StatusOr<PullResult>& result) { Answer(result); });
    if (pull_wait_.Begin(id)) Finish(grpc::Status::CANCELLED);
  }

  void Answer(const absl::StatusOr<PullResult>& result) {
    if (!result.ok()) {
      Finish(ToGrpcStatus(result.status()));
      return;
    }
    span_.Begin(store_, "pull", request_.session, result->header.step);
    sending_.emplace(store_.active_pulls(), request_.session);
    *response_ = Encode(*result);
    store_.wire_bytes().AddSent(response_->Length());
    span_.End();
    permit_->StopCounting();
    Finish(grpc::Status::OK);
  }

  grpc::ByteBuffer Encode(const PullResult& result) {
    v1::PushPullResponse answer;
    *answer.mutable_push() = ToProto(outcome_);
    *answer.mutable_pull() = ToProto(result.header);
    answer.mutable_pull()->set_shares_memory(memories_.Shares(request_.session));
    if (result.snapshot == nullptr) return EncodeMessage(answer);
    const grpc::ByteBuffer parameters = Parameters(result);
    const uint64_t bytes = result.snapshot->values.size() * sizeof(float);
    store_.wire_bytes().AddChunkSent(ValueTransform::kFloat32, {bytes, parameters.Length()});
    return Joined(EncodeMessage(answer), parameters);
  }

  // In an inconsistent read they are as new as possible.
  grpc::ByteBuffer Parameters(const PullResult& result) {
    if (!result.header.inconsistent) return chunks_.Copy(result.snapshot, checksums_);
    const uint64_t size = result.snapshot->values.size();
    return EncodePart(store_.stripe().newest(size), 0, size, checksums_);
  }

  grpc::ByteBuffer* const response_;
  PullLimits& limits_;
  SnapshotChunks& chunks_;
  const SharedMemories& memories_;
  const TransformRegistry& transforms_;
  ParameterStore& store_;
  const Checksums checksums_;          // of the parameters
  std::atomic<bool> beginning_{true};  // OnReadDone() has not returned from BeginPush()
  grpc::ByteBuffer message_;
  uint64_t gradient_bytes_ = 0;           // on the wire
  absl::StatusOr<TensorChunk> gradient_;  // until it is added
  PullRequest request_;
  PushOutcome outcome_;                 // once the push was answered
  std::shared_ptr<PullPermit> permit_;  // from the message on; it counts, and holds no step
  CallWait<PushId> push_wait_;          // at its header
  CallWait<PullId> pull_wait_;          // for the parameters
  CallSpan span_;                       // while the gradient is added, or the answer made
  absl::optional<ActivePulls::Stream> sending_;  // from the answer until gRPC has sent it
  std::shared_ptr<PushPullCall> self_;           // until the call is done
};

}  // namespace

grpc::ServerReadReactor<grpc::ByteBuffer>* ServePushPull(grpc::CallbackServerContext& context,
                                                         grpc::ByteBuffer* response,
                                                         PullLimits& limits, SnapshotChunks& chunks,
                                                         const SharedMemories& memories,
                                                         const TransformRegistry& transforms,
                                                         ParameterStore& store) {
  const auto call = std::make_shared<PushPullCall>(context, response, limits, chunks, memories,
                                                   transforms, store);
  call->Start();
  return call.get();
}

}  // namespace sluice
