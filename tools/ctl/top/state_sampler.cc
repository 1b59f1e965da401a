#include "tools/ctl/top/state_sampler.h"

#include <utility>

#include "common/base/clock.h"

namespace sluice {
namespace {

constexpr absl::Duration kReconnectTime = absl::Seconds(1);

}  // namespace

StateSampler::StateSampler(std::unique_ptr<OperatorClient> client, absl::Duration interval)
    : client_(std::move(client)), interval_(interval) {
  thread_.Run([this] { Run(); });
}

StateSampler::~StateSampler() {
  stop_.Raise();
  client_->Cancel();
  thread_.Drain();
}

absl::optional<absl::StatusOr<Sample>> StateSampler::Take() {
  absl::MutexLock lock(&mu_);
  return std::exchange(latest_, absl::nullopt);
}

void StateSampler::Run() {
  do {
    auto sample = Ask();
    const bool lost = absl::IsUnavailable(sample.status());
    {
      absl::MutexLock lock(&mu_);
      latest_ = std::move(sample);
    }
    if (lost) client_->Reconnect(kReconnectTime).IgnoreError();  // the next call says why not
  } while (!stop_.WaitFor(interval_));
}

absl::StatusOr<Sample> StateSampler::Ask() {
  auto state = client_->GetState();
  if (!state.ok()) return state.status();
  auto workers = client_->ListWorkers();
  if (!workers.ok()) return workers.status();
  return Sample{RealClock().Now(), *std::move(state), *std::move(workers)};
}

}  // namespace sluice
