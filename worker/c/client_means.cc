// The part of sluice_client that has to do with running means.

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/tensor/running_means.h"
#include "worker/c/client.h"
#include "worker/c/model.h"

using sluice::RunningMeans;

absl::Status sluice_client::KeepRunningMeans(RunningMeans elements) {
  const absl::Status idle = calls_->CheckIdle("sluice_keep_running_means()");
  if (!idle.ok()) return idle;
  if (part_ != Part::kNew) {
    return absl::FailedPreconditionError(
        "sluice_keep_running_means() may be called before sluice_join() only");
  }
  const absl::Status fits = CheckFits(elements, layout_);
  if (fits.ok()) kept_means_ = std::move(elements);
  return fits;
}

absl::Status sluice_client::SetRunningMeans(RunningMeans means) {
  const absl::Status ready = CheckJoined("sluice_set_running_means()");
  if (ready.ok()) running_means_ = std::move(means);
  return ready;
}

// A push replaces their values.
absl::Status sluice_client::CheckNotSentEarly(const RunningMeans& means) const {
  for (const sluice::RunningMean& mean : means) {
    const auto gap = early_coverage_.FirstGap(mean.begin);
    if (gap.has_value() && gap->begin == mean.begin && gap->end >= mean.end) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("the running means of elements ", mean.begin, " to ", mean.end,
                     " were sent early, or are not in the vector; sluice_push() replaces and sends "
                     "them, so do not call sluice_send_early() for them"));
  }
  return absl::OkStatus();
}

namespace sluice {
namespace {

absl::StatusOr<RunningMeans> MeansOf(const sluice_running_mean* means, size_t count) {
  RunningMeans read;
  for (const sluice_running_mean& mean : absl::MakeConstSpan(means, count)) {
    read.push_back(RunningMeanOf(mean.offset, mean.count, mean.decay));
  }
  const absl::Status sound = CheckRunningMeans(read);
  if (!sound.ok()) return sound;
  return read;
}

}  // namespace
}  // namespace sluice

// ---- sluice.h ----

sluice_code sluice_keep_running_means(sluice_client* client, const sluice_running_mean* means,
                                      size_t count) {
  return sluice::Guarded([&] {
    auto read = sluice::MeansOf(means, count);
    return read.ok() ? client->KeepRunningMeans(*std::move(read)) : read.status();
  });
}

sluice_code sluice_set_running_means(sluice_client* client, const sluice_running_mean* means,
                                     size_t count) {
  return sluice::Guarded([&] {
    auto read = sluice::MeansOf(means, count);
    return read.ok() ? client->SetRunningMeans(*std::move(read)) : read.status();
  });
}
