#include "server/incarnation.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "server/admission/draining.h"
#include "server/durable/save_checkpoint.h"

namespace sluice {

namespace {

std::unique_ptr<ReplicaLinks> MakeReplicaLinks(const ServerOptions& options,
                                               const ShardStatus& state) {
  if (options.servers == 1) return nullptr;
  ReplicaLinksOptions links;
  links.job_id = state.job_id;
  links.servers = options.servers;
  links.incarnation = state.incarnation;
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
                                     std::unique_ptr<HostedModel> model)
    : replicas_(MakeReplicaLinks(options, model->shard().Describe())), model_(std::move(model)) {
  if (replicas_ != nullptr) LeadReplicas();
}

void ServerIncarnation::LeadReplicas() {
  shard().Lead(replicas_->links(), [this] { return replicas_->Describe(); });
  replicas_->Listen(
      [this](uint32_t replica, const ReplicaReport& report) { OnReport(replica, report); },
      [this](const ReplicaLoss& loss) { OnLost(loss); },
      [this](uint32_t replica, const FoundFiles& found) { OnCame(replica, found); });
}

void ServerIncarnation::OnCame(uint32_t replica, const FoundFiles& found) {
  if (durable() == nullptr) return;
  const absl::Status ours = durable()->CheckOther(replica, found);
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
  if (journal != nullptr && durable() != nullptr) {
    durable()->NoteJournal(replica, journal->durable, Named(replica, journal->stopped));
  }
  shard().OnReport(replica, report);
}

ServerIncarnation::~ServerIncarnation() {
  // Else the threads that recover and that write checkpoints may wait for the other servers.
  if (replicas_ != nullptr) StopWaiting(DrainingError());
  recovering_.Drain();
  grpc_server_ = nullptr;
  shard().store().executors().Drain();
}

absl::StatusOr<std::unique_ptr<ServerIncarnation>> ServerIncarnation::Start(
    const ServerOptions& options, Trace* trace, NamedModels* named,
    const absl::optional<ShardStatus>& left) {
  auto model = HostedModel::Open(options, trace);
  if (!model.ok()) return model.status();
  std::unique_ptr<ServerIncarnation> made(new ServerIncarnation(options, *std::move(model)));
  const bool with_others = options.servers > 1 && made->durable() != nullptr;
  if (with_others) made->shard().durability().BeginRecovery();
  absl::Status started = with_others ? absl::OkStatus() : made->Recover(left);
  if (started.ok() && named != nullptr) {
    started = named->Restore(made->shard().Describe().job_id);
  }
  if (started.ok()) started = made->Listen(options, named);
  if (!started.ok()) return started;
  if (with_others) made->RecoverWithOthers(left);
  return made;
}

absl::Status ServerIncarnation::Recover(const absl::optional<ShardStatus>& left) {
  const absl::Status recovered = model_->Recover();
  const bool goes_back = recovered.ok() && durable() != nullptr && left.has_value();
  return goes_back ? ContinueFrom(*left) : recovered;
}

void ServerIncarnation::RecoverWithOthers(const absl::optional<ShardStatus>& left) {
  recovering_.Run([this, left] {
    if (!replicas_->AwaitAll() || !lost_replica().why.empty()) return;
    const absl::Status recovered = Recover(left);
    if (recovered.ok()) {
      shard().durability().EndRecovery();
    } else {
      OnLost({std::string(recovered.message())});
    }
  });
}

absl::Status ServerIncarnation::ContinueFrom(const ShardStatus& left) {
  const ShardStatus state = shard().Describe();
  const uint64_t steps = left.step.value() - std::min(left.step, state.step).value();
  shard().durability().SetLostSteps(std::max(steps, durable()->lost_steps()));
  if (!(left.consistency == state.consistency)) {
    const auto set = shard().ChangeSettings(
        [&](RuntimeSettings& settings) { return settings.Propose(left.consistency); });
    if (!set.ok()) return set.status();
  }
  if (left.base_learning_rate > 0) {
    const auto set = shard().ChangeSettings(
        [&](RuntimeSettings& settings) { return settings.Propose(left.base_learning_rate / 2); });
    if (!set.ok()) return set.status();
  }
  // With these settings, in case that this process dies soon. If the disk is full, training goes on
  // all the same, and the log says so.
  SaveCheckpointAndWait(shard(), *durable()).IgnoreError();
  return absl::OkStatus();
}

absl::Status ServerIncarnation::Listen(const ServerOptions& options, NamedModels* named) {
  auto door = StartGrpcServer(
      {*options.listen, options.token, options.credentials, options.limits, options.transforms,
       options.advertised_host, options.shard.expected_workers, named, options.log},
      model_->parts(), replicas_.get());
  if (!door.ok()) return door.status();
  grpc_server_ = *std::move(door);
  return absl::OkStatus();
}

void ServerIncarnation::Tick() {
  shard().Tick();
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
  shard().StopWaiting(why);
}

void ServerIncarnation::EndReplicas(int exit_code) {
  if (replicas_ == nullptr) return;
  StopWaiting(DrainingError());
  shard().EndReplicas(exit_code);
}

void ServerIncarnation::Shutdown(const absl::Status& why, absl::Duration grace) {
  if (replicas_ != nullptr && shard().durability().recovers()) StopWaiting(why);
  recovering_.Drain();
  model_->EndAnswers(why);
  if (replicas_ != nullptr) {
    shard().StopWaiting(why);
    replicas_->Close(absl::UnavailableError("the first server has ended"));
  }
  grpc_server_->Shutdown(grace);
  shard().store().executors().Drain();  // a push that was cancelled may have completed a step
}

}  // namespace sluice
