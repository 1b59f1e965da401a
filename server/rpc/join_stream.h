// What Join and JoinInParts have in common: the session that their request opens, and its events.

#ifndef SLUICE_SERVER_RPC_JOIN_STREAM_H_
#define SLUICE_SERVER_RPC_JOIN_STREAM_H_

#include <grpcpp/grpcpp.h>

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/optional.h"
#include "common/wire/chunk.h"
#include "common/wire/messages.h"
#include "common/wire/status.h"
#include "common/wire/versions.h"
#include "server/rpc/session_resources.h"
#include "server/shard/shard.h"
#include "sluice/v1/parameter_server.pb.h"

namespace sluice {

// `Reactor` is gRPC's for the call; it writes grpc::ByteBuffers. The object deletes itself when the
// call is done; when it ends, it ends the session in `resources`, and reports the lost connection
// to the shard. Events are queued, since gRPC writes one at a time. The shard's listener may
// outlive the call, so it holds the stream weakly.
template <typename Reactor>
class JoinStream : public Reactor, public std::enable_shared_from_this<JoinStream<Reactor>> {
 public:
  // `resources` and `shard` outlive it.
  JoinStream(SessionResources& resources, Shard& shard) : resources_(resources), shard_(shard) {}

  // Owns itself from now on. Called once, before Open().
  void Begin() { self_ = this->shared_from_this(); }

  // Opens the session that `message` asks for and tells the caller of it, or why there is none.
  // `connection` is the caller's. Called once at most. If it is not called, finish the call.
  void Open(const v1::JoinRequest& message, std::string connection) {
    absl::StatusOr<JoinRequest> request = Read(message);
    const absl::StatusOr<Welcome> welcome = request.ok() ? Join(*request) : request.status();
    if (!welcome.ok()) {
      this->Finish(ToGrpcStatus(welcome.status()));
      return;
    }
    resources_.Begin(welcome->session, request->role, std::move(connection), request->memory_name,
                     Shown(request->worker));
    v1::JoinEvent event;
    *event.mutable_welcome() = ToProto(*welcome);
    event.mutable_welcome()->set_shares_memory(resources_.memories.Shares(welcome->session));
    event.mutable_welcome()->set_protocol(kServedRevisions.newest);
    event.mutable_welcome()->set_version(kVersion);
    resources_.versions.Saw(message.worker(), message.version());
    absl::MutexLock lock(&mu_);
    session_ = welcome->session;
    events_.push_front(std::move(event));  // events may have come before it
    phase_ = Phase::kIdle;
    WriteNext();
  }

  void OnWriteDone(bool ok) override {
    absl::MutexLock lock(&mu_);
    if (!end_.has_value() && events_.front().has_evicted()) end_ = grpc::Status::OK;
    if (!ok) end_ = grpc::Status::CANCELLED;
    events_.pop_front();
    phase_ = Phase::kIdle;
    WriteNext();
  }

  void OnCancel() override {
    absl::MutexLock lock(&mu_);
    end_ = grpc::Status::CANCELLED;
    WriteNext();
  }

  void OnDone() override {
    absl::optional<SessionId> session;
    {
      absl::MutexLock lock(&mu_);
      session = session_;
    }
    if (session.has_value()) {
      resources_.End(*session);
      shard_.ConnectionLost(*session);
    }
    self_.reset();
  }

 private:
  enum class Phase {
    kOpens,     // has no session yet; the welcome is the first that is written
    kIdle,      // writes the next event when it comes
    kWrites,    // an event
    kFinished,  // gRPC has been told how the call ends
  };

  static absl::StatusOr<JoinRequest> Read(const v1::JoinRequest& message) {
    // First of all: another revision may mean other things by the other fields.
    const absl::Status fits =
        CheckWorkerRevision(kServedRevisions, message.protocol(), message.version());
    if (!fits.ok()) return fits;
    return FromProto(message);
  }

  absl::StatusOr<Welcome> Join(JoinRequest& request) {
    ShareLayout(request);
    absl::StatusOr<std::vector<std::string>> servers = std::vector<std::string>();
    if (resources_.servers) servers = resources_.servers();
    if (!servers.ok()) return servers.status();
    auto welcome = shard_.Join(request, [weak = this->weak_from_this()](const JobEvent& event) {
      if (const std::shared_ptr<JoinStream> stream = weak.lock()) stream->Tell(event);
    });
    if (!welcome.ok()) return welcome;
    welcome->servers = *std::move(servers);
    if (const auto constants = resources_.constants->values()) {
      welcome->constants = constants->checksum;
    }
    return welcome;
  }

  // Compares the layouts here, because the shard would do it under its mutex. A layout may have a
  // million tensors, but a copy of the job's is known at once.
  void ShareLayout(JoinRequest& request) const {
    const std::shared_ptr<const Layout> job = shard_.layout();
    if (job != nullptr && CheckSameLayout(*job, request.layout).ok()) request.layout = *job;
  }

  void Tell(const JobEvent& event) {
    absl::MutexLock lock(&mu_);
    events_.push_back(ToProto(event));
    WriteNext();
  }

  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (phase_ != Phase::kIdle) return;
    if (end_.has_value()) {
      phase_ = Phase::kFinished;
      this->Finish(*end_);
    } else if (!events_.empty()) {
      phase_ = Phase::kWrites;
      bytes_ = EncodeMessage(events_.front());
      this->StartWrite(&bytes_);
    }
  }

  SessionResources& resources_;
  Shard& shard_;
  std::shared_ptr<JoinStream> self_;  // until the call is done

  absl::Mutex mu_;
  std::deque<v1::JoinEvent> events_ ABSL_GUARDED_BY(mu_);
  grpc::ByteBuffer bytes_ ABSL_GUARDED_BY(mu_);  // of the event that is being written
  Phase phase_ ABSL_GUARDED_BY(mu_) = Phase::kOpens;
  absl::optional<SessionId> session_ ABSL_GUARDED_BY(mu_);  // once it is open
  // How the call ends, once that is known: OK after the eviction was told, CANCELLED if it broke.
  absl::optional<grpc::Status> end_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_JOIN_STREAM_H_
