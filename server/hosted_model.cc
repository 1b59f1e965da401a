#include "server/hosted_model.h"

#include <utility>

#include "common/base/clock.h"
#include "common/base/thread_pool.h"
#include "server/durable/recovery.h"

namespace sluice {

HostedModel::HostedModel(const ServerOptions& options, std::unique_ptr<DurableDirectory> durable,
                         Trace* trace)
    : shard_(
          options.shard, RealClock(),
          [this](const JobEvent& event) {
            if (event.kind == JobEvent::Kind::kDeserted) deserted_ = true;
            if (event.kind == JobEvent::Kind::kDraining) drained_ = true;
          },
          std::make_unique<ThreadPool>(options.threads), trace, Executors::OnThreads()),
      durable_(std::move(durable)),
      constants_(std::make_shared<ConstantStore>(options.shard.job_id, options.durable.directory,
                                                 *options.files)) {}

HostedModel::~HostedModel() { shard_.store().executors().Drain(); }

absl::StatusOr<std::unique_ptr<HostedModel>> HostedModel::Open(ServerOptions options,
                                                               Trace* trace) {
  std::unique_ptr<DurableDirectory> durable;
  if (!options.durable.directory.empty()) {
    auto opened = DurableDirectory::Open(options.durable, *options.files);
    if (!opened.ok()) return opened.status();
    durable = *std::move(opened);
    options.shard.incarnation = durable->incarnation();
    if (!durable->job_id().empty()) options.shard.job_id = durable->job_id();
  }
  return std::unique_ptr<HostedModel>(new HostedModel(options, std::move(durable), trace));
}

absl::Status HostedModel::Recover() {
  if (durable_ == nullptr) return absl::OkStatus();
  if (const ShardCheckpoint* const restored = durable_->restored()) {
    const absl::Status constants = constants_->Restore(restored->layout->constants());
    if (!constants.ok()) return constants;
  }
  return sluice::Recover(*durable_, shard_);
}

void HostedModel::EndAnswers(const absl::Status& why) {
  if (durable_ != nullptr) durable_->FlushJournal();
  shard_.durability().FailHeldAnswers(why);
}

}  // namespace sluice
