#include "server/grpc_pull.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/wire.h"
#include "common/wire_status.h"

namespace sluice {
namespace {

// First waits in the shard, then writes; a call that is cancelled while it waits is taken out of
// the shard by whoever notices first, and then finished by that thread alone.
class PullStream final : public grpc::ServerWriteReactor<v1::PullParamsResponse> {
 public:
  explicit PullStream(Shard& shard) : shard_(shard) {}

  void Start(const v1::PullParamsRequest& request) {
    const PullId id = shard_.Pull(FromProto(request), [this](absl::StatusOr<PullResult> result) {
      Begin(std::move(result));
    });
    if (id == PullId()) return;  // answered: this may be gone
    bool cancelled = false;
    {
      absl::MutexLock lock(&mu_);
      id_ = id;
      cancelled = cancelled_;
    }
    if (cancelled) CancelWait(id);
  }

  void OnCancel() override {
    PullId id;
    {
      absl::MutexLock lock(&mu_);
      cancelled_ = true;
      id = id_;
    }
    CancelWait(id);
  }

  void OnWriteDone(bool ok) override {
    if (!ok) {
      Finish(grpc::Status::CANCELLED);
    } else {
      WriteNext();
    }
  }

  void OnDone() override { delete this; }

 private:
  void CancelWait(PullId id) {
    if (shard_.CancelPull(id)) Finish(grpc::Status::CANCELLED);
  }

  void Begin(absl::StatusOr<PullResult> result) {
    if (!result.ok()) {
      Finish(ToGrpcStatus(result.status()));
      return;
    }
    snapshot_ = std::move(result->snapshot);
    inconsistent_ = result->header.inconsistent;
    *message_.mutable_header() = ToProto(result->header);
    StartWrite(&message_);
  }

  void WriteNext() {
    const uint64_t size = snapshot_ == nullptr ? 0 : snapshot_->values.size();
    if (offset_ == size) {
      Finish(grpc::Status::OK);
      return;
    }
    const uint64_t count = std::min<uint64_t>(kChunkElements, size - offset_);
    if (inconsistent_) snapshot_ = shard_.Newest(offset_ + count);
    ToProto(offset_, snapshot_->values.span().subspan(offset_, count), message_.mutable_chunk());
    offset_ += count;
    StartWrite(&message_);
  }

  Shard& shard_;
  v1::PullParamsResponse message_;
  std::shared_ptr<const Snapshot> snapshot_;
  bool inconsistent_ = false;
  uint64_t offset_ = 0;

  absl::Mutex mu_;
  PullId id_ ABSL_GUARDED_BY(mu_);
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace

grpc::ServerWriteReactor<v1::PullParamsResponse>* ServePull(const v1::PullParamsRequest& request,
                                                            Shard& shard) {
  auto* const stream = new PullStream(shard);
  stream->Start(request);
  return stream;
}

}  // namespace sluice
