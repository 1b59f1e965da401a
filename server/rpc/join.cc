#include "server/rpc/join.h"

#include <grpcpp/alarm.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/base/error.h"
#include "common/wire/chunk.h"
#include "common/wire/deadline.h"
#include "common/wire/join.h"
#include "common/wire/status.h"
#include "server/rpc/join_stream.h"

namespace sluice {
namespace {

using SimpleStream = JoinStream<grpc::ServerWriteReactor<grpc::ByteBuffer>>;
using PartsStream = JoinStream<grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>>;

// Callers through a unix socket cannot be told apart.
TurnOwner OwnerOf(const std::string& connection) {
  const bool is_unix = absl::StartsWith(connection, "unix:");
  return {connection, is_unix ? kJoinsOfUnixSockets : kJoinsOfConnection};
}

// Without an ErrorInfo, so that the caller joins again as after a lost connection.
grpc::Status JoinAgain(const std::string& why) {
  return {grpc::StatusCode::UNAVAILABLE, absl::StrCat(why, "; join again")};
}

grpc::Status TooManyJoins(const TurnOwner& owner) {
  return JoinAgain(absl::StrCat("the connection ", owner.name, " has ", owner.most,
                                " requests to join in parts, which are answered first"));
}

// Waits for its turn, reads until the request is complete, then is a JoinStream like the other.
class JoinInParts final : public PartsStream {
 public:
  JoinInParts(JoinInPartsOptions options, SessionResources& resources, Shard& shard)
      : PartsStream(resources, shard), options_(std::move(options)) {}

  void Start() {
    Begin();
    const TurnOwner owner = OwnerOf(options_.connection);
    const Turn turn = options_.turns.Add(this, owner, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) static_cast<JoinInParts&>(*self).Read();
    });
    if (turn == Turn::kNow) Read();
    if (turn == Turn::kRefused) Finish(TooManyJoins(owner));
  }

  void OnReadDone(bool ok) override {
    const std::shared_ptr<PartsStream> self = shared_from_this();
    absl::Status status;
    v1::JoinRequest whole;
    {
      absl::MutexLock lock(&mu_);
      if (read_) return;
      status = ok ? Take() : parts_.CheckComplete();
      if (status.ok() && !parts_.complete()) {
        StartRead(&bytes_);
        return;
      }
      bytes_.Clear();
      whole = EndReading();
    }
    Answer(std::move(status), std::move(whole));
    options_.turns.Leave(this);
  }

  // A call that has its turn reads, and its read fails.
  void OnCancel() override {
    if (options_.turns.Cancel(this)) return Finish(grpc::Status::CANCELLED);
    PartsStream::OnCancel();
  }

  void OnDone() override {
    options_.turns.Leave(this);
    PartsStream::OnDone();
  }

 private:
  // The lock keeps EndLate() from finishing the call before its read has begun.
  void Read() {
    absl::MutexLock lock(&mu_);
    alarm_.Set(DeadlineAfter(options_.time), [weak = weak_from_this()](bool expired) {
      const auto self = weak.lock();
      if (expired && self != nullptr) static_cast<JoinInParts&>(*self).EndLate();
    });
    StartRead(&bytes_);
  }

  absl::Status Take() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    v1::JoinRequest part;
    if (DecodeMessage(bytes_, &part)) return parts_.Add(std::move(part), bytes_.Length());
    return MakeError(Reason::kBadArgument, "a part of the request is not a valid JoinRequest");
  }

  v1::JoinRequest EndReading() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    read_ = true;
    alarm_.Cancel();
    return parts_.Take();
  }

  // Takes the request over, so that it is gone when the next call has its turn.
  void Answer(absl::Status status, v1::JoinRequest whole) {
    if (status.ok()) status = options_.may_join(whole);
    if (status.ok()) {
      Open(whole, options_.connection);
    } else {
      Finish(ToGrpcStatus(status));
    }
  }

  void EndLate() {
    const std::shared_ptr<PartsStream> self = shared_from_this();
    std::string came;
    {
      absl::MutexLock lock(&mu_);
      if (read_) return;
      came = absl::StrCat(parts_.parts(), " parts with ", parts_.bytes(), " bytes came");
      EndReading();
    }
    options_.turns.Leave(this);  // before Finish(), after which the server may be gone
    Finish(JoinAgain(absl::StrCat("the request to join was not complete within ",
                                  absl::FormatDuration(options_.time), ": ", came)));
  }

  const JoinInPartsOptions options_;
  absl::Mutex mu_;
  bool read_ ABSL_GUARDED_BY(mu_) = false;  // whole, or given up
  JoinParts parts_ ABSL_GUARDED_BY(mu_);
  grpc::ByteBuffer bytes_;  // of the part that is read; gRPC's from StartRead() to OnReadDone()
  grpc::Alarm alarm_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

grpc::ServerWriteReactor<grpc::ByteBuffer>* ServeJoin(const v1::JoinRequest& request,
                                                      std::string connection,
                                                      SessionResources& resources, Shard& shard) {
  const auto stream = std::make_shared<SimpleStream>(resources, shard);
  stream->Begin();
  stream->Open(request, std::move(connection));
  return stream.get();
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* ServeJoinInParts(
    JoinInPartsOptions options, SessionResources& resources, Shard& shard) {
  const auto stream = std::make_shared<JoinInParts>(std::move(options), resources, shard);
  stream->Start();
  return stream.get();
}

}  // namespace sluice
