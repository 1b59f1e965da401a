#include "server/replica_incarnation.h"

#include <utility>

#include "common/base/random.h"
#include "common/base/serial_executor.h"
#include "common/base/thread_pool.h"

namespace sluice {
namespace {

// Each incarnation gets a new nonce, so the leader sees a new process.
LeaderLinkOptions LinkOptionsOf(const ReplicaServerOptions& options, const Address& address) {
  LeaderLinkOptions link;
  link.target = options.leader;
  link.credentials = options.credentials;
  link.token = options.token;
  link.job_id = options.job_id;
  link.index = options.index;
  link.servers = options.servers;
  link.process_nonce = RandomNonce();
  link.address = AdvertisedAs(address, options.advertised_host).ToString();
  link.saves = !options.checkpoint_directory.empty();
  link.journals = link.saves && options.durability == Durability::kJournal;
  return link;
}

Executors MakeExecutors(bool writes_files) {
  Executors executors = Executors::OnThreads();
  if (writes_files) executors.files = std::make_unique<SerialExecutor>("sluice-save");
  return executors;
}

}  // namespace

ReplicaIncarnation::ReplicaIncarnation(const ReplicaServerOptions& options,
                                       std::unique_ptr<StripeDirectory> storage)
    : storage_(std::move(storage)),
      replica_(
          {options.index, options.servers}, options.snapshots,
          std::make_unique<ThreadPool>(options.threads), MakeExecutors(storage_ != nullptr),
          [this](const ReplicaReport& report) { link_->Report(report); }, storage_.get(),
          options.table_memory) {}

absl::StatusOr<std::unique_ptr<ReplicaIncarnation>> ReplicaIncarnation::Start(
    const ReplicaServerOptions& options) {
  std::unique_ptr<StripeDirectory> storage;
  if (!options.checkpoint_directory.empty()) {
    auto opened = StripeDirectory::Open(*options.files, options.checkpoint_directory,
                                        {options.index, options.servers}, options.durability);
    if (!opened.ok()) return opened.status();
    storage = *std::move(opened);
  }
  std::unique_ptr<ReplicaIncarnation> started(new ReplicaIncarnation(options, std::move(storage)));
  const absl::Status listens = started->Listen(options);
  if (!listens.ok()) return listens;
  return started;
}

absl::Status ReplicaIncarnation::Listen(const ReplicaServerOptions& options) {
  GrpcServerOptions grpc = {*options.listen, options.token, options.credentials, options.limits,
                            options.transforms};
  grpc.workers = options.expected_workers;
  auto started = StartStripeServer(grpc, options.leader, replica_);
  if (!started.ok()) return started.status();
  grpc_server_ = *std::move(started);
  address_ = grpc_server_->address();
  LeaderLinkOptions link = LinkOptionsOf(options, address_);
  link.figures = [this] { return replica_.Describe(); };
  if (storage_ != nullptr) link.found = storage_->found();
  link.begin = [this](const std::string& job_id, SessionId base) {
    if (storage_ != nullptr) storage_->NoteJob(job_id);
    replica_.calls().EndEarlier(base);
  };
  link_ = std::make_unique<LeaderLink>(
      std::move(link), [this](const ReplicaCommand& command) { replica_.Execute(command); });
  return absl::OkStatus();
}

void ReplicaIncarnation::Shutdown(absl::Duration grace) {
  if (grpc_server_ == nullptr) return;
  replica_.EndCopies();  // which calls wait for
  grpc_server_->Shutdown(grace);
  link_->Stop();
  replica_.Drain();
  grpc_server_ = nullptr;
}

}  // namespace sluice
