#include "server/rpc/slots.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/encoding/checksum.h"
#include "common/wire/refused_stream.h"
#include "common/wire/status.h"
#include "server/rpc/byte_stream.h"

namespace sluice {
namespace {

absl::string_view BytesOf(const SlotCheckpoint& slot) {
  const absl::Span<const float> values = slot.values.span();
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

class PullSlotsStream final : public ByteStream,
                              public std::enable_shared_from_this<PullSlotsStream> {
 public:
  PullSlotsStream(Turns& turns, Shard& shard)
      : ByteStream(shard.wire_bytes()), turns_(turns), shard_(shard) {}

  // The call may end on another thread before this returns.
  void Start() {
    const std::shared_ptr<PullSlotsStream> self = self_ = shared_from_this();
    const Turn turn = turns_.Add(this, {"", kMostCalls}, [weak = weak_from_this()] {
      if (const auto waited = weak.lock()) waited->Copy();
    });
    if (turn == Turn::kNow) Copy();
    if (turn == Turn::kRefused) {
      Finish({grpc::StatusCode::RESOURCE_EXHAUSTED,
              absl::StrCat(kMostCalls, " calls of PullSlots wait already; call it later")});
    }
  }

  void OnCancel() override {
    if (turns_.Cancel(this)) Finish(grpc::Status::CANCELLED);
  }
  void OnDone() override {
    turns_.Leave(this);
    self_.reset();
  }

 private:
  static constexpr size_t kMostCalls = 1024;

  void Copy() {
    shard_.durability().TakeCheckpoint(
        [self = shared_from_this()](
            const absl::StatusOr<std::shared_ptr<const ShardCheckpoint>>& taken) {
          if (taken.ok()) {
            self->SendSlots(*taken);
          } else {
            self->Finish(ToGrpcStatus(taken.status()));
          }
        });
  }

  void SendSlots(const std::shared_ptr<const ShardCheckpoint>& taken) {
    v1::PullSlotsResponse first;
    first.set_step(taken->step.value());
    first.set_optimizer_steps(taken->optimizer_steps);
    std::vector<absl::string_view> slots;
    for (const SlotCheckpoint& slot : taken->slots) {
      slots.push_back(BytesOf(slot));
      first.add_names(slot.name);
      first.add_checksums(Checksum(slots.back()));
    }
    Send(EncodeMessage(first), v1::PullSlotsResponse::kDataFieldNumber, std::move(slots), taken);
  }

  Turns& turns_;
  Shard& shard_;
  std::shared_ptr<PullSlotsStream> self_;  // until the call is done
};

}  // namespace

grpc::ServerWriteReactor<grpc::ByteBuffer>* ServePullSlots(const v1::PullSlotsRequest& request,
                                                           Turns& turns, Shard& shard) {
  using Refused = RefusedStream<grpc::ServerWriteReactor<grpc::ByteBuffer>>;
  const absl::Status open = shard.Heartbeat(SessionId(request.session())).status();
  if (!open.ok()) return new Refused(open);
  const uint32_t servers = shard.Describe().servers;
  if (servers > 1) {
    return new Refused(
        MakeError(Reason::kBadArgument,
                  absl::StrCat("the state of the optimizer lies on ", servers,
                               " servers, and can be brought ",
                               "from one; let the servers save it (--checkpoint-dir)")));
  }
  const auto stream = std::make_shared<PullSlotsStream>(turns, shard);
  stream->Start();
  return stream.get();
}

}  // namespace sluice
