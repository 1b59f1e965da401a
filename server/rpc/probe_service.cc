#include "server/rpc/probe_service.h"

#include <grpcpp/alarm.h>

#include <atomic>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/base/error.h"
#include "common/base/version.h"
#include "common/tensor/shared_floats.h"
#include "common/tensor/shared_memory.h"
#include "common/wire/caller.h"
#include "common/wire/chunk.h"
#include "common/wire/deadline.h"
#include "common/wire/messages.h"
#include "common/wire/status.h"
#include "common/wire/versions.h"
#include "server/rpc/call_canceller.h"
#include "server/rpc/probe_request.h"
#include "sluice/v1/probe.grpc.pb.h"

namespace sluice {
namespace {

using ProbeReactor = grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;

absl::Status TooManyProbes(const std::string& why) {
  return MakeError(Reason::kTooManyProbes, why);
}

// The probes that are under way. May be used by any thread.
class OpenProbes {
 public:
  explicit OpenProbes(int most) : most_(most) {}

  bool Begin() {
    if (open_.fetch_add(1) < most_) return true;
    End();
    return false;
  }
  void End() { open_.fetch_sub(1); }

 private:
  const int most_;
  std::atomic<int> open_{0};
};

// The chunk that all probes are sent, with and without a checksum. May be used by any thread.
class SentChunk {
 public:
  const grpc::ByteBuffer& With(Checksums checksums) {
    absl::MutexLock lock(&mu_);
    if (!made_) {
      const SharedFloats zeros = Share(std::vector<float>(kChunkElements));
      plain_ = EncodeChunk(0, zeros, Checksums::kOff);
      checked_ = EncodeChunk(0, zeros, Checksums::kOn);
      made_ = true;
    }
    return checksums == Checksums::kOn ? checked_ : plain_;
  }

 private:
  absl::Mutex mu_;
  bool made_ ABSL_GUARDED_BY(mu_) = false;  // servers that nobody probes make none
  grpc::ByteBuffer plain_;
  grpc::ByteBuffer checked_;
};

// One call. It reads a request, sends what that asks for, then reads the next one. Deletes itself
// when the call is done.
class ProbeStream final : public ProbeReactor,
                          public OpenWatch,
                          public std::enable_shared_from_this<ProbeStream> {
 public:
  // The caller has begun the probe in `open`. All references outlive it.
  ProbeStream(grpc::CallbackServerContext& context, const ProbeOptions& options,
              const grpc::ByteBuffer& chunk, OpenProbes& open, OpenWatches& watches)
      : options_(options), chunk_(chunk), call_(context), open_(open), watches_(watches) {}

  void Start() {
    self_ = shared_from_this();
    {
      absl::MutexLock lock(&mu_);
      alarm_.Set(DeadlineAfter(options_.limits.time), [weak = weak_from_this()](bool expired) {
        if (const auto self = weak.lock()) self->EndEarly(expired);
      });
    }
    watches_.Add(this);
    GoOn();
  }

  void OnReadDone(bool ok) override {
    const std::shared_ptr<ProbeStream> self = shared_from_this();
    if (!ok) return EndWith(grpc::Status::OK);
    const absl::Status taken = Take();
    taken.ok() ? GoOn() : EndWith(ToGrpcStatus(taken));
  }

  void OnWriteDone(bool ok) override {
    const std::shared_ptr<ProbeStream> self = shared_from_this();
    if (!ok) return EndWith(grpc::Status::CANCELLED);
    GoOn();
  }

  // The server is going down. Its lock is held, so the alarm's thread ends the call.
  void End() override {
    absl::MutexLock lock(&mu_);
    alarm_.Cancel();
  }

  void OnDone() override {
    watches_.Remove(this);
    {
      absl::MutexLock lock(&mu_);
      ended_ = true;
      alarm_.Cancel();
      farewell_.Cancel();
    }
    open_.End();
    self_.reset();
  }

 private:
  enum class Answer { kNone, kEcho, kChunks };

  // Reads one request, and decides what is sent.
  absl::Status Take() {
    const auto request = ReadProbeRequest(message_);
    if (!request.ok()) return request.status();
    switch (request->kind) {
      case ProbeRequest::Kind::kEcho:
        TakeEcho(request->memory);
        return absl::OkStatus();
      case ProbeRequest::Kind::kChunk:
        received_ += request->elements * sizeof(float);
        return Move(request->elements * sizeof(float));
      case ProbeRequest::Kind::kSend:
        left_ = request->chunks;
        answer_ = Answer::kChunks;
        return Move(request->chunks * kChunkElements * sizeof(float));
    }
    return absl::OkStatus();
  }

  void TakeEcho(const absl::optional<SharedMemoryName>& memory) {
    v1::MeasureResponse response;
    v1::EchoAnswer& answer = *response.mutable_echo();
    answer.set_bytes(received_);
    // The caller shares one chunk; opening it maps all of its pages.
    answer.set_shares_memory(options_.shares_memory && memory.has_value() &&
                             memory->elements <= kChunkElements &&
                             SharedMemoryView::Open(*memory).ok());
    answer.set_protocol(kServedRevisions.newest);
    answer.set_version(kVersion);
    echo_ = EncodeMessage(response);
    answer_ = Answer::kEcho;
  }

  absl::Status Move(uint64_t bytes) {
    moved_ += bytes;
    if (moved_ <= options_.limits.bytes) return absl::OkStatus();
    return TooManyProbes(absl::StrCat("this probe has moved ", moved_, " bytes, expected at most ",
                                      options_.limits.bytes, "; begin another"));
  }

  // Starts the next write or read. Its completion may run on another thread at once.
  void GoOn() {
    absl::MutexLock lock(&mu_);
    if (ended_) return;
    writing_ = answer_ != Answer::kNone;
    if (!writing_) return StartRead(&message_);
    const bool echoes = answer_ == Answer::kEcho;
    if (echoes || --left_ == 0) answer_ = Answer::kNone;
    StartWrite(echoes ? &echo_ : &chunk_);
  }

  void EndWith(const grpc::Status& status) {
    {
      absl::MutexLock lock(&mu_);
      if (ended_) return;
      ended_ = true;
    }
    Finish(status);
  }

  // The probe's time is over, or the server is going down. A write that its caller does not read
  // can only be cancelled; it then fails. So can an end whose caller does not read it.
  void EndEarly(bool expired) {
    constexpr absl::Duration kPatience = absl::Seconds(1);
    {
      absl::MutexLock lock(&mu_);
      if (ended_) return;
      if (writing_) return call_.Cancel();
      farewell_.Set(DeadlineAfter(kPatience), [weak = weak_from_this()](bool passed) {
        const auto self = weak.lock();
        if (passed && self != nullptr) self->call_.Cancel();
      });
    }
    EndWith(ToGrpcStatus(
        expired ? TooManyProbes(absl::StrCat("this probe has taken ",
                                             absl::FormatDuration(options_.limits.time),
                                             ", all its time; begin another"))
                : MakeError(Reason::kDraining, "the server is going down")));
  }

  const ProbeOptions& options_;
  const grpc::ByteBuffer& chunk_;
  CallCanceller call_;
  OpenProbes& open_;
  OpenWatches& watches_;
  std::shared_ptr<ProbeStream> self_;  // until the call is done

  // One operation is under way at a time, and its completion uses these.
  grpc::ByteBuffer message_;
  grpc::ByteBuffer echo_;
  uint64_t received_ = 0;  // bytes of payload
  uint64_t moved_ = 0;     // the same, in both directions
  Answer answer_ = Answer::kNone;
  uint32_t left_ = 0;  // chunks to send

  absl::Mutex mu_;
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  grpc::Alarm alarm_ ABSL_GUARDED_BY(mu_);     // when its time is over
  grpc::Alarm farewell_ ABSL_GUARDED_BY(mu_);  // when its caller has not read that
};

class RefusedProbe final : public ProbeReactor {
 public:
  explicit RefusedProbe(const absl::Status& status) { Finish(ToGrpcStatus(status)); }
  void OnDone() override { delete this; }
};

class GrpcProbeService final : public v1::Probe::WithRawCallbackMethod_Measure<v1::Probe::Service> {
 public:
  GrpcProbeService(ProbeOptions options, OpenWatches& watches)
      : options_(std::move(options)), watches_(watches), open_(options_.limits.at_once) {}

  ProbeReactor* Measure(grpc::CallbackServerContext* context) override {
    const absl::Status allowed = CheckToken(*context, options_.token);
    if (!allowed.ok()) return new RefusedProbe(allowed);
    if (!open_.Begin()) {
      return new RefusedProbe(TooManyProbes(
          absl::StrCat(options_.limits.at_once, " probes are under way, the limit; try again in ",
                       absl::FormatDuration(options_.limits.time))));
    }
    const auto stream = std::make_shared<ProbeStream>(
        *context, options_, chunk_.With(ChecksumsFor(context->peer())), open_, watches_);
    stream->Start();
    return stream.get();
  }

 private:
  const ProbeOptions options_;
  OpenWatches& watches_;
  OpenProbes open_;
  SentChunk chunk_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeGrpcProbeService(ProbeOptions options, OpenWatches& watches) {
  return std::make_unique<GrpcProbeService>(std::move(options), watches);
}

}  // namespace sluice
