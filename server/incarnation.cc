#include "server/incarnation.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "common/base/thread_pool.h"
#include "server/admission/draining.h"
#include "server/durable/recovery.h"
#include "server/durable/save_checkpoint.h"

namespace sluice {

namespace {

std::unique_ptr<ReplicaLinks> MakeReplicaLinks(const ServerOptions& options) {
  if (options.servers == 1) return nullptr;
  ReplicaLinksOptions links;
  links.job_id = options.shard.job_id;
  links.servers = options.servers;
  links.incarnation = options.shard.incarnation;
  links.session_base = options.shard.session_base;
  links.process_nonce = RandomNonce();
  links.saves = !options.durable.directory.empty();
  links.journals = links.saves && options.durable.durability == Durability::kJournal;
  links.lease = options.server_lease;
  return std::make_unique<ReplicaLinks>(std::move(links), RealClock());
}

// Names the server whose journal has stopped: its message begins with what the server cannot do.
absl::Status Named(uint32_t replica, const absl::Status& stopped) {
  if (stopped.ok()) return stopped;
  return absl::Status(stopped.code(), absl::StrCat(replica, " ", stopped.message()));
}

}  // namespace

ServerIncarnation::ServerIncarnation(const ServerOptions& options,
                                     std::unique_ptr<DurableDirectory> durable, Trace* trace)
    : replicas_(MakeReplicaLinks(options)),
      shard_(
          options.shard, RealClock(),
          [this](const JobEvent& event) {
            if (event.kind == JobEvent::Kind::kDeserted) deserted_ = true;
            if (event.kind == JobEvent::Kind::kDraining) drained_ = true;
          },
          std::make_unique<ThreadPool>(options.threads), trace, Executors::OnThreads()),
      durable_(std::move(durable)),
      constants_(std::make_shared<ConstantStore>(options.shard.job_id, options.durable.directory,
                                                 *options.files)) {
  if (replicas_ != nullptr) LeadReplicas();
}

void ServerIncarnation::LeadReplicas() {
  shard_.Lead(replicas_->links());
  replicas_->Listen(
      [this](uint32_t replica, const ReplicaReport& report) { OnReport(replica, report); },
      [this](const ReplicaLoss& loss) { OnLost(loss); },
      [this](uint32_t replica, const FoundFiles& found) { OnCame(replica, found); });
}

void ServerIncarnation::OnCame(uint32_t replica, const FoundFiles& found) {
  if (durable_ == nullptr) return;
  const absl::Status ours = durable_->CheckOther(replica, found);
  if (!ours.ok()) OnLost({std::string(ours.message())});
}

void ServerIncarnation::OnLost(const ReplicaLoss& loss) {
  absl::MutexLock lock(&mu_);
  if (lost_replica_.why.empty()) lost_replica_ = loss;
}

void ServerIncarnation::OnReport(uint32_t replica, const ReplicaReport& report) {
  const auto* const loaded = std::get_if<LoadedReport>(&report);
  if (loaded != nullptr && !loaded->failed.ok()) {
    OnLost({absl::StrCat("server ", replica, " of ", replicas_->links().size() + 1, " ",
                         loaded->failed.message())});
  }
  const auto* const journal = std::get_if<JournalReport>(&report);
  if (journal != nullptr && durable_ != nullptr) {
    durable_->NoteJournal(replica, journal->durable, Named(replica, journal->stopped));
  }
  shard_.OnReport(replica, report);
}

ServerIncarnation::~ServerIncarnation() {
  // Else the threads that recover and that write checkpoints may wait for the other servers.
  if (replicas_ != nullptr) StopWaiting(DrainingError());
  recovering_.Drain();
  grpc_server_ = nullptr;
  shard_.executors().Drain();
}

absl::StatusOr<std::unique_ptr<ServerIncarnation>> ServerIncarnation::Start(
    ServerOptions options, Trace* trace, const absl::optional<ShardStatus>& left) {
  std::unique_ptr<DurableDirectory> durable;
  if (!options.durable.directory.empty()) {
    auto opened = DurableDirectory::Open(options.durable, *options.files);
    if (!opened.ok()) return opened.status();
    durable = *std::move(opened);
    options.shard.incarnation = durable->incarnation();
    if (!durable->job_id().empty()) options.shard.job_id = durable->job_id();
  }
  std::unique_ptr<ServerIncarnation> made(
      new ServerIncarnation(options, std::move(durable), trace));
  const bool with_others = options.servers > 1 && made->durable_ != nullptr;
  if (with_others) made->shard_.BeginRecovery();
  absl::Status started = with_others ? absl::OkStatus() : made->Recover(left);
  if (started.ok()) started = made->Listen(options);
  if (!started.ok()) return started;
  if (with_others) made->RecoverWithOthers(left);
  return made;
}

absl::Status ServerIncarnation::Recover(const absl::optional<ShardStatus>& left) {
  if (durable_ == nullptr) return absl::OkStatus();
  absl::Status recovered;
  if (const ShardCheckpoint* const restored = durable_->restored()) {
    recovered = constants_->Restore(restored->layout->constants());
  }
  if (recovered.ok()) recovered = sluice::Recover(*durable_, shard_);
  return recovered.ok() && left.has_value() ? ContinueFrom(*left) : recovered;
}

void ServerIncarnation::RecoverWithOthers(const absl::optional<ShardStatus>& left) {
  recovering_.Run([this, left] {
    if (!replicas_->AwaitAll() || !lost_replica().why.empty()) return;
    const absl::Status recovered = Recover(left);
    if (recovered.ok()) {
      shard_.EndRecovery();
    } else {
      OnLost({std::string(recovered.message())});
    }
  });
}

absl::Status ServerIncarnation::ContinueFrom(const ShardStatus& left) {
  const ShardStatus state = shard_.Describe();
  const uint64_t steps = left.step.value() - std::min(left.step, state.step).value();
  shard_.SetLostSteps(std::max(steps, durable_->lost_steps()));
  if (!(left.consistency == state.consistency)) {
    const auto set = shard_.SetConsistency(left.consistency);
    if (!set.ok()) return set.status();
  }
  if (left.base_learning_rate > 0) {
    const auto set = shard_.SetLearningRate(left.base_learning_rate / 2);
    if (!set.ok()) return set.status();
  }
  // With these settings, in case that this process dies soon. If the disk is full, training goes on
  // all the same, and the log says so.
  SaveCheckpointAndWait(shard_, *durable_).IgnoreError();
  return absl::OkStatus();
}

absl::Status ServerIncarnation::Listen(const ServerOptions& options) {
  auto door = StartGrpcServer(
      {*options.listen, options.token, options.credentials, options.limits, options.transforms,
       options.advertised_host, options.shard.expected_workers, constants_},
      shard_, durable_.get(), replicas_.get());
  if (!door.ok()) return door.status();
  grpc_server_ = *std::move(door);
  return absl::OkStatus();
}

void ServerIncarnation::Tick() {
  shard_.Tick();
  if (replicas_ != nullptr) replicas_->Tick();
}

ReplicaLoss ServerIncarnation::lost_replica() const {
  absl::MutexLock lock(&mu_);
  return lost_replica_;
}

std::string ServerIncarnation::away_replica() const {
  return replicas_ == nullptr ? std::string() : replicas_->Away();
}

void ServerIncarnation::StopWaiting(const absl::Status& why) {
  if (replicas_ != nullptr) replicas_->StopAwaiting();
  shard_.StopWaiting(why);
}

void ServerIncarnation::EndReplicas(int exit_code) {
  if (replicas_ == nullptr) return;
  StopWaiting(DrainingError());
  shard_.EndReplicas(exit_code);
}

void ServerIncarnation::Shutdown(const absl::Status& why, absl::Duration grace) {
  if (replicas_ != nullptr && shard_.recovers()) StopWaiting(why);
  recovering_.Drain();
  if (durable_ != nullptr) durable_->FlushJournal();
  shard_.FailHeldAnswers(why);
  if (replicas_ != nullptr) {
    shard_.StopWaiting(why);
    replicas_->Close(absl::UnavailableError("the first server has ended"));
  }
  grpc_server_->Shutdown(grace);
  shard_.executors().Drain();  // a push that was cancelled may have completed a step
}

}  // namespace sluice
