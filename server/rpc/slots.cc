#include "server/rpc/slots.h"

#include <grpcpp/alarm.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/encoding/checksum.h"
#include "common/wire/deadline.h"
#include "common/wire/status.h"
#include "server/rpc/byte_stream.h"
#include "sluice/v1/parameter_server.pb.h"

namespace sluice {
namespace {

absl::string_view BytesOf(const SlotCheckpoint& slot) {
  const absl::Span<const float> values = slot.values.span();
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

constexpr size_t kMostCopies = 4;
constexpr size_t kMostCalls = 128;  // that wait for a copy
constexpr absl::Duration kGrace = absl::Seconds(60);
constexpr double kSlowest = 1e6;  // bytes in a second

class PullSlotsStream final : public ByteStream,
                              public std::enable_shared_from_this<PullSlotsStream> {
 public:
  PullSlotsStream(grpc::CallbackServerContext& context, SlotCopies& copies, ParameterStore& store,
                  CopyStripe copy)
      : ByteStream(store.wire_bytes()),
        copies_(copies),
        store_(store),
        copy_(std::move(copy)),
        context_(&context) {}

  // The call may end on another thread before this returns.
  void Start() {
    const std::shared_ptr<PullSlotsStream> self = self_ = shared_from_this();
    const Turn turn = copies_.turns().Add(this, {"", kMostCalls}, [weak = weak_from_this()] {
      if (const auto waited = weak.lock()) waited->Copy();
    });
    if (turn == Turn::kNow) Copy();
    if (turn == Turn::kRefused) Refuse(absl::StrCat(kMostCalls, " calls of PullSlots wait"));
  }

  void OnCancel() override {
    if (copies_.turns().Cancel(this)) Finish(grpc::Status::CANCELLED);
  }
  void OnDone() override {
    copies_.turns().Leave(this);
    {
      absl::MutexLock lock(&mu_);
      context_ = nullptr;
      alarm_.Cancel();
    }
    self_.reset();
  }

 private:
  void Refuse(const std::string& why) {
    Finish({grpc::StatusCode::RESOURCE_EXHAUSTED, absl::StrCat(why, "; call it later")});
  }

  void Copy() {
    const std::shared_ptr<const Snapshot> latest = store_.stripe().latest();
    const SlotCopies::Copy there = latest == nullptr ? nullptr : copies_.Of(latest->step);
    if (there != nullptr) return SendLater(there);
    if (copies_.alive() >= kMostCopies) {
      return Refuse(absl::StrCat("callers still read the slots of ", kMostCopies, " steps"));
    }
    copy_([self = shared_from_this()](
              const absl::StatusOr<std::shared_ptr<const StripeCheckpoint>>& taken) {
      if (!taken.ok()) return self->Finish(ToGrpcStatus(taken.status()));
      // Training waits for this thread.
      self->store_.executors().summaries->Run([self, taken = *taken] {
        auto copy = std::make_shared<CopiedSlots>();
        copy->taken = taken;
        for (const SlotCheckpoint& slot : taken->slots) {
          copy->checksums.push_back(Checksum(BytesOf(slot)));
        }
        self->copies_.Add(copy);
        self->SendSlots(copy);
      });
    });
  }

  // Not in this thread, which may be that of the call whose turn was before.
  void SendLater(const SlotCopies::Copy& copy) {
    store_.executors().summaries->Run([self = shared_from_this(), copy] { self->SendSlots(copy); });
  }

  void SendSlots(const SlotCopies::Copy& copy) {
    v1::PullSlotsResponse first;
    first.set_step(copy->taken->parameters->step.value());
    first.set_optimizer_steps(copy->taken->optimizer_steps);
    *first.mutable_checksums() = {copy->checksums.begin(), copy->checksums.end()};
    std::vector<absl::string_view> slots;
    size_t bytes = 0;
    for (const SlotCheckpoint& slot : copy->taken->slots) {
      first.add_names(slot.name);
      slots.push_back(BytesOf(slot));
      bytes += slots.back().size();
    }
    copies_.turns().Leave(this);
    CutOffAfter(kGrace + absl::Seconds(static_cast<double>(bytes) / kSlowest));
    Send(EncodeMessage(first), v1::PullSlotsResponse::kDataFieldNumber, std::move(slots), copy);
  }

  void CutOffAfter(absl::Duration longest) {
    absl::MutexLock lock(&mu_);
    alarm_.Set(DeadlineAfter(longest), [weak = weak_from_this()](bool due) {
      const auto call = weak.lock();
      if (!due || call == nullptr) return;
      absl::MutexLock lock_of_call(&call->mu_);
      if (call->context_ != nullptr) call->context_->TryCancel();
    });
  }

  SlotCopies& copies_;
  ParameterStore& store_;
  const CopyStripe copy_;
  absl::Mutex mu_;
  grpc::CallbackServerContext* context_ ABSL_GUARDED_BY(mu_);  // null when the call is done
  grpc::Alarm alarm_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<PullSlotsStream> self_;  // until the call is done
};

}  // namespace

SlotCopies::Copy SlotCopies::Of(Step step) const {
  absl::MutexLock lock(&mu_);
  for (const auto& copy : copies_) {
    Copy alive = copy.lock();
    if (alive != nullptr && alive->taken->parameters->step == step) return alive;
  }
  return nullptr;
}

void SlotCopies::Add(const Copy& copy) {
  absl::MutexLock lock(&mu_);
  copies_.erase(std::remove_if(copies_.begin(), copies_.end(),
                               [](const auto& other) { return other.expired(); }),
                copies_.end());
  copies_.push_back(copy);
}

size_t SlotCopies::alive() const {
  absl::MutexLock lock(&mu_);
  return static_cast<size_t>(std::count_if(copies_.begin(), copies_.end(),
                                           [](const auto& copy) { return !copy.expired(); }));
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* ServePullSlots(grpc::CallbackServerContext& context,
                                                           SlotCopies& copies,
                                                           ParameterStore& store, CopyStripe copy) {
  const auto stream = std::make_shared<PullSlotsStream>(context, copies, store, std::move(copy));
  stream->Start();
  return stream.get();
}

}  // namespace sluice
