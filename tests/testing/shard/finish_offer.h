// Offers initial parameters to a shard that leads no other servers, which answers at once.

#ifndef SLUICE_TESTS_TESTING_SHARD_FINISH_OFFER_H_
#define SLUICE_TESTS_TESTING_SHARD_FINISH_OFFER_H_

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "server/shard/shard.h"

namespace sluice {

inline absl::StatusOr<InitializeOutcome> FinishOffer(Shard& shard,
                                                     std::unique_ptr<PendingPush> offer) {
  absl::StatusOr<InitializeOutcome> outcome;
  absl::Notification answered;
  shard.store().FinishInitialize(std::move(offer), [&](const auto& told) {
    outcome = told;
    answered.Notify();
  });
  answered.WaitForNotification();
  return outcome;
}

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_SHARD_FINISH_OFFER_H_
