#include "server/rpc/servers/replica_links.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/base/version.h"
#include "common/wire/field.h"
#include "common/wire/status.h"
#include "server/rpc/servers/queued_stream.h"
#include "sluice/v1/sequencer.grpc.pb.h"

namespace sluice {
namespace {

constexpr size_t kMaxAddress = 256;  // bytes

using FollowReactor = grpc::ServerBidiReactor<v1::HolderMessage, v1::SequencerMessage>;

// The link keeps the latest stream, perhaps longer than the call is open.
class FollowStream final : public QueuedStream<FollowReactor, v1::SequencerMessage, FollowCall>,
                           public std::enable_shared_from_this<FollowStream> {
 public:
  explicit FollowStream(ReplicaLinks& links) : links_(links) {}

  void Start() {
    self_ = shared_from_this();
    StartRead(&message_);
  }

  void OnReadDone(bool ok) override {
    const absl::Status taken = ok ? Take() : absl::UnavailableError("the connection broke");
    if (taken.ok()) {
      StartRead(&message_);
    } else {
      End(taken);
    }
  }

  void OnDone() override { self_.reset(); }

  void End(const absl::Status& why) override {
    GrpcReplicaLink* const link = link_;
    if (link != nullptr) link->End(*this);
    StopWriting([this, why] { Finish(ToGrpcStatus(why)); });
  }

 private:
  absl::Status Take() {
    GrpcReplicaLink* const link = link_;
    if (link == nullptr) return Begin();
    auto whole = parts_.Add(std::exchange(message_, v1::HolderMessage()));
    if (!whole.ok()) return whole.status();
    if (!whole->has_value()) return absl::OkStatus();
    if ((*whole)->has_hello()) return BadField("hello", "sent twice", "only the first message");
    return link->Take(*this, **whole);
  }

  absl::Status Begin() {
    if (!message_.has_hello()) {
      return BadField("hello", "absent", "the first message of the call");
    }
    const auto link = links_.Find(message_.hello());
    if (!link.ok()) return link.status();
    const absl::Status begun =
        (*link)->Begin(message_.hello(), message_.taken(), links_.Hello(), shared_from_this());
    if (!begun.ok()) return begun;
    links_.NoteCame(message_.hello());
    link_ = *link;
    return absl::OkStatus();
  }

  ReplicaLinks& links_;
  std::atomic<GrpcReplicaLink*> link_{nullptr};  // once it has begun
  v1::HolderMessage message_;
  MessageParts<v1::HolderMessage> parts_;
  std::shared_ptr<FollowStream> self_;  // until the call is done
};

class GrpcSequencer final : public v1::Sequencer::CallbackService {
 public:
  explicit GrpcSequencer(ReplicaLinks& links) : links_(links) {}

  FollowReactor* Follow(grpc::CallbackServerContext* /*context*/) override {
    const auto stream = std::make_shared<FollowStream>(links_);
    stream->Start();
    return stream.get();
  }

 private:
  ReplicaLinks& links_;
};

}  // namespace

ReplicaLinks::ReplicaLinks(ReplicaLinksOptions options, const Clock& clock)
    : options_(std::move(options)) {
  for (uint32_t i = 1; i < options_.servers; ++i) {
    const GrpcReplicaLink::Place place = {i, options_.servers, options_.saves};
    links_.push_back(std::make_unique<GrpcReplicaLink>(place, clock));
  }
}

void ReplicaLinks::Listen(ReplicaReportListener report, ReplicaLossListener lost,
                          ReplicaCameListener came) {
  came_ = std::move(came);
  for (const auto& link : links_) link->Listen(report, lost);
}

std::vector<ReplicaLink*> ReplicaLinks::links() const {
  std::vector<ReplicaLink*> links;
  for (const auto& link : links_) links.push_back(link.get());
  return links;
}

std::vector<ReplicaLinkState> ReplicaLinks::states() const {
  std::vector<ReplicaLinkState> states;
  for (const auto& link : links_) states.push_back(link->state());
  return states;
}

std::vector<ServerStatus> ReplicaLinks::Describe() const {
  std::vector<ServerStatus> servers(1);
  for (const auto& link : links_) servers.push_back(link->Describe());
  absl::MutexLock lock(&mu_);
  servers[0].address = address_;
  return servers;
}

void ReplicaLinks::SetAddress(std::string address) {
  absl::MutexLock lock(&mu_);
  address_ = std::move(address);
}

absl::StatusOr<std::vector<std::string>> ReplicaLinks::Addresses() const {
  std::vector<std::string> addresses(1);
  {
    absl::MutexLock lock(&mu_);
    addresses[0] = address_;
  }
  for (const ReplicaLinkState& state : states()) addresses.push_back(state.address);
  for (size_t i = 0; i < addresses.size(); ++i) {
    if (!addresses[i].empty()) continue;
    return absl::UnavailableError(
        absl::StrCat("server ", i, " of ", options_.servers, " has not come yet"));
  }
  return addresses;
}

void ReplicaLinks::NoteCame(const v1::HolderHello& hello) {
  FoundFiles found = {hello.directory(), {}};
  for (const v1::HolderFile& file : hello.files()) {
    found.files.push_back({file.name(), file.job_id()});
  }
  if (came_ != nullptr) came_(hello.index(), found);
  absl::MutexLock lock(&mu_);
  have_come_.insert(hello.index());
}

bool ReplicaLinks::AwaitAll() const {
  const auto over = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return !awaits_ || have_come_.size() == links_.size();
  };
  absl::MutexLock lock(&mu_, absl::Condition(&over));
  return awaits_;
}

void ReplicaLinks::StopAwaiting() {
  absl::MutexLock lock(&mu_);
  awaits_ = false;
}

void ReplicaLinks::Tick() {
  for (const auto& link : links_) {
    link->Acknowledge();
    link->CheckLease(options_.lease);
  }
}

std::string ReplicaLinks::Away() const {
  const std::vector<ReplicaLinkState> states = this->states();
  for (size_t i = 0; i < states.size(); ++i) {
    if (states[i].connected || states[i].address.empty()) continue;
    return absl::StrCat("server ", i + 1, " of ", options_.servers, ", at ", states[i].address,
                        ", is away");
  }
  return "";
}

bool ReplicaLinks::AllTaken() const {
  return std::all_of(links_.begin(), links_.end(),
                     [](const auto& link) { return link->AllTaken(); });
}

void ReplicaLinks::Close(const absl::Status& why) {
  for (const auto& link : links_) link->Close(why);
}

// The version comes first: servers of another one may mean other things by their fields.
absl::StatusOr<GrpcReplicaLink*> ReplicaLinks::Find(const v1::HolderHello& hello) const {
  if (hello.version() != kVersion) {
    return MakeError(
        Reason::kVersionMismatch,
        absl::StrCat("the server ", hello.index(), " is Sluice ", Shown(hello.version()),
                     ", the first server ", kVersion, "; all servers of a job need one version"));
  }
  if (!hello.job_id().empty() && hello.job_id() != options_.job_id) {
    return MakeError(Reason::kWrongJob,
                     absl::StrCat("the first server runs the job ", options_.job_id,
                                  ", not the job ", Shown(hello.job_id())));
  }
  if (hello.servers() != options_.servers) {
    return MakeError(Reason::kWrongJob,
                     absl::StrCat("the job of the first server has ", options_.servers,
                                  " servers, not ", hello.servers()));
  }
  if (hello.saves() != options_.saves) {
    return MakeError(
        Reason::kWrongJob,
        absl::StrCat("the first server ", options_.saves ? "saves" : "saves no",
                     " checkpoints, and server ", hello.index(),
                     hello.saves() ? " has a directory for them" : " has no directory for them",
                     "; give all servers --checkpoint-dir, or none"));
  }
  if (hello.journals() != options_.journals) {
    return MakeError(
        Reason::kWrongJob,
        absl::StrCat("the first server writes ", options_.journals ? "a" : "no",
                     " journal, and server ", hello.index(), hello.journals() ? " one" : " none",
                     "; give all servers the same --durability"));
  }
  if (hello.index() == 0 || hello.index() >= options_.servers) {
    return BadField("index", absl::StrCat(hello.index()),
                    absl::StrCat("1 to ", options_.servers - 1));
  }
  if (hello.process_nonce() == 0) {
    return BadField("process_nonce", "0", "a random number that is not 0");
  }
  if (hello.address().empty() || hello.address().size() > kMaxAddress) {
    return BadField("address", absl::StrCat("a text of ", hello.address().size(), " bytes"),
                    absl::StrCat("1 to ", kMaxAddress));
  }
  const uint64_t heard = hello.sequencer_nonce();
  if (heard == 0 || heard == options_.process_nonce.value()) return links_[hello.index() - 1].get();
  return MakeError(Reason::kNotInitialized,
                   options_.saves
                       ? "the first server has begun a new incarnation; begin anew, too"
                       : "the first server was started again, and its part of the parameters is "
                         "lost; the job cannot go on");
}

v1::SequencerHello ReplicaLinks::Hello() const {
  v1::SequencerHello hello;
  hello.set_job_id(options_.job_id);
  hello.set_process_nonce(options_.process_nonce.value());
  hello.set_incarnation(options_.incarnation.value());
  hello.set_session_base(options_.session_base.value());
  return hello;
}

std::unique_ptr<grpc::Service> MakeGrpcSequencer(ReplicaLinks& links) {
  return std::make_unique<GrpcSequencer>(links);
}

}  // namespace sluice
