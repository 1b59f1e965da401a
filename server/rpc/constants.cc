#include "server/rpc/constants.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/base/error.h"
#include "common/encoding/checksum.h"
#include "common/wire/chunk.h"
#include "common/wire/refused_stream.h"
#include "common/wire/status.h"
#include "server/rpc/byte_stream.h"
#include "server/rpc/call_wait.h"

namespace sluice {
namespace {

// Each read follows the answer to the one before it. The turn and the end of the session come on
// other threads; Answer() lets the first one end the call.
class OfferConstantsStream final : public grpc::ServerReadReactor<grpc::ByteBuffer>,
                                   public std::enable_shared_from_this<OfferConstantsStream> {
 public:
  OfferConstantsStream(grpc::ByteBuffer* response, OfferTurns& turns, ConstantStore& constants,
                       Shard& shard)
      : response_(response),
        turns_(turns),
        constants_(constants),
        shard_(shard),
        turn_([&turns](const void* offer) { return turns.Cancel(offer); }) {}

  void Start() {
    self_ = shared_from_this();
    StartRead(&message_);
  }

  void OnReadDone(bool ok) override {
    if (phase() == Phase::kAwaitsHeader) {
      Begin(ok);
    } else if (ok) {
      Add();
    } else {
      Adopt();
    }
  }

  void OnCancel() override {
    if (turn_.Cancel()) Answer(absl::CancelledError());
  }

  void OnDone() override {
    turns_.Leave(this);
    self_.reset();
  }

 private:
  enum class Phase {
    kAwaitsHeader,
    kWaits,     // for its turn
    kReceives,  // messages are read, one after the other
    kAnswered,  // or about to be: only who brought it here may finish the call
  };

  Phase phase() {
    absl::MutexLock lock(&mu_);
    return phase_;
  }

  void Begin(bool ok) {
    v1::OfferConstantsRequest first;
    if (!ok || !DecodeMessage(message_, &first) || !first.has_header()) {
      return Answer(
          MakeError(Reason::kMissingHeader, "the offer has no header; send it before the bytes"));
    }
    {
      absl::MutexLock lock(&mu_);
      phase_ = Phase::kWaits;
    }
    const SessionId session(first.header().session());
    checksum_ = first.header().checksum();
    const auto judged = shard_.store().JudgeOffer(session);
    if (!judged.ok()) return Answer(judged.status());
    wanted_ = shard_.layout();
    size_ = BytesOf(wanted_->constants());
    const auto go = [weak = weak_from_this()] {
      if (const auto stream = weak.lock()) stream->TakeTurn();
    };
    const auto end = [weak = weak_from_this(), session] {
      if (const auto stream = weak.lock()) stream->Answer(OfferLostSession(session));
    };
    const absl::Status waits = turns_.Wait({this, session, go, end});
    if (!waits.ok()) return Answer(waits);
    if (turn_.Begin(this)) Answer(absl::CancelledError());
  }

  // The lock keeps Answer() from finishing the call before its read has begun.
  void TakeTurn() {
    if (const auto known = constants_.values()) return Answer(known);
    absl::MutexLock lock(&mu_);
    if (phase_ == Phase::kAnswered) return;
    phase_ = Phase::kReceives;
    StartRead(&message_);
  }

  void Add() {
    shard_.store().wire_bytes().AddReceived(message_.Length());
    v1::OfferConstantsRequest part;
    if (!DecodeMessage(message_, &part) || part.data().empty()) {
      return Answer(MakeError(Reason::kBadArgument, "a message of the offer has no bytes"));
    }
    if (part.data().size() > size_ - bytes_.size()) {
      return Answer(WrongSize(bytes_.size() + part.data().size(), "or more bytes"));
    }
    if (bytes_.empty()) bytes_.reserve(size_);
    bytes_.append(part.data());
    absl::MutexLock lock(&mu_);
    if (phase_ != Phase::kAnswered) StartRead(&message_);
  }

  absl::Status WrongSize(uint64_t found, absl::string_view unit) const {
    return MakeError(Reason::kBadArgument,
                     absl::StrCat("the offer has ", found, " ", unit,
                                  ", and the constants of the layout have ", size_));
  }

  // From here only the task answers. So the call keeps its turn until the values are saved.
  void Adopt() {
    if (turn_.cancelled()) return Answer(absl::CancelledError());
    if (bytes_.size() != size_) return Answer(WrongSize(bytes_.size(), "bytes"));
    if (Checksum(bytes_) != checksum_) {
      return Answer(MakeError(Reason::kCorruptChunk,
                              "the constants were damaged on their way; offer them again"));
    }
    if (!MayAnswer()) return;
    shard_.store().executors().arrivals->Run([self = shared_from_this()] {
      self->Send(self->constants_.Adopt(self->wanted_->constants(), std::move(self->bytes_)));
    });
  }

  using Outcome = absl::StatusOr<std::shared_ptr<const ConstantValues>>;

  void Answer(const Outcome& outcome) {
    if (MayAnswer()) Send(outcome);
  }

  void Send(const Outcome& outcome) {
    if (outcome.ok()) {
      v1::OfferConstantsResponse response;
      response.set_checksum((*outcome)->checksum);
      *response_ = EncodeMessage(response);
    }
    Finish(ToGrpcStatus(outcome.status()));
  }

  bool MayAnswer() {
    absl::MutexLock lock(&mu_);
    return std::exchange(phase_, Phase::kAnswered) != Phase::kAnswered;
  }

  grpc::ByteBuffer* const response_;
  OfferTurns& turns_;
  ConstantStore& constants_;
  Shard& shard_;
  grpc::ByteBuffer message_;
  std::shared_ptr<const Layout> wanted_;
  uint64_t size_ = 0;      // of the constants of the layout
  uint64_t checksum_ = 0;  // of the offer
  std::string bytes_;
  CallWait<const void*> turn_;
  std::shared_ptr<OfferConstantsStream> self_;  // until the call is done

  absl::Mutex mu_;
  Phase phase_ ABSL_GUARDED_BY(mu_) = Phase::kAwaitsHeader;
};

class PullConstantsStream final : public ByteStream {
 public:
  explicit PullConstantsStream(Shard& shard) : ByteStream(shard.store().wire_bytes()) {}

  void Start(const std::shared_ptr<const ConstantValues>& values) {
    v1::PullConstantsResponse first;
    first.set_checksum(values->checksum);
    Send(EncodeMessage(first), v1::PullConstantsResponse::kDataFieldNumber, {values->bytes},
         values);
  }

  void OnDone() override { delete this; }
};

}  // namespace

absl::Status CheckHasConstants(const ConstantStore& constants, const Shard& shard) {
  const std::shared_ptr<const Layout> layout = shard.layout();
  if (layout == nullptr || layout->constants().empty() || constants.values() != nullptr) {
    return absl::OkStatus();
  }
  return MakeError(Reason::kNotInitialized,
                   absl::StrCat("the server has no values for the model's ",
                                layout->constants().size(), " constants; offer them first"));
}

grpc::ServerReadReactor<grpc::ByteBuffer>* ServeOfferConstants(grpc::ByteBuffer* response,
                                                               OfferTurns& turns,
                                                               ConstantStore& constants,
                                                               Shard& shard) {
  const auto stream = std::make_shared<OfferConstantsStream>(response, turns, constants, shard);
  stream->Start();
  return stream.get();
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* ServePullConstants(SessionId session,
                                                               const ConstantStore& constants,
                                                               Shard& shard) {
  using Refused = RefusedStream<grpc::ServerWriteReactor<grpc::ByteBuffer>>;
  const absl::Status open = shard.Heartbeat(session).status();
  if (!open.ok()) return new Refused(open);
  const absl::Status there = CheckHasConstants(constants, shard);
  if (!there.ok()) return new Refused(there);
  auto values = constants.values();
  if (values == nullptr) {  // of a model without constants
    values = std::make_shared<const ConstantValues>(ConstantValues{"", Checksum("")});
  }
  auto* const stream = new PullConstantsStream(shard);
  stream->Start(values);
  return stream;
}

}  // namespace sluice
