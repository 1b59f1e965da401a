#include "server/holder_incarnation.h"

#include <utility>

#include "common/base/random.h"
#include "common/base/thread_pool.h"

namespace sluice {
namespace {

// The process counts as another one for each incarnation.
SequencerLinkOptions LinkOptionsOf(const HolderServerOptions& options, const Address& address) {
  SequencerLinkOptions link;
  link.target = options.sequencer;
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

}  // namespace

HolderIncarnation::HolderIncarnation(const HolderServerOptions& options,
                                     std::unique_ptr<StripeDirectory> storage)
    : storage_(std::move(storage)),
      stripe_(
          {options.index, options.servers}, options.snapshots,
          std::make_unique<ThreadPool>(options.threads), Executors::OnThreads(),
          [this](const HolderReport& report) { link_->Report(report); }, storage_.get(),
          options.table_memory) {}

absl::StatusOr<std::unique_ptr<HolderIncarnation>> HolderIncarnation::Start(
    const HolderServerOptions& options) {
  std::unique_ptr<StripeDirectory> storage;
  if (!options.checkpoint_directory.empty()) {
    auto opened = StripeDirectory::Open(*options.files, options.checkpoint_directory,
                                        {options.index, options.servers}, options.durability);
    if (!opened.ok()) return opened.status();
    storage = *std::move(opened);
  }
  std::unique_ptr<HolderIncarnation> started(new HolderIncarnation(options, std::move(storage)));
  const absl::Status listens = started->Listen(options);
  if (!listens.ok()) return listens;
  return started;
}

absl::Status HolderIncarnation::Listen(const HolderServerOptions& options) {
  GrpcServerOptions grpc = {*options.listen, options.token, options.credentials, options.limits,
                            options.transforms};
  grpc.workers = options.expected_workers;
  auto started = StartStripeServer(grpc, options.sequencer, stripe_);
  if (!started.ok()) return started.status();
  grpc_server_ = *std::move(started);
  address_ = grpc_server_->address();
  SequencerLinkOptions link = LinkOptionsOf(options, address_);
  link.figures = [this] { return stripe_.Describe(); };
  if (storage_ != nullptr) link.found = storage_->found();
  link.begin = [this](const std::string& job_id, SessionId base) {
    if (storage_ != nullptr) storage_->NoteJob(job_id);
    stripe_.EndEarlier(base);
  };
  link_ = std::make_unique<SequencerLink>(
      std::move(link), [this](const HolderCommand& command) { stripe_.Execute(command); });
  return absl::OkStatus();
}

void HolderIncarnation::Shutdown(absl::Duration grace) {
  if (grpc_server_ == nullptr) return;
  grpc_server_->Shutdown(grace);
  link_->Stop();
  stripe_.Drain();
  grpc_server_ = nullptr;
}

}  // namespace sluice
