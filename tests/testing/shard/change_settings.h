// Changes the settings of a shard, as its operator does. Each returns the first step that has them.

#ifndef SLUICE_TESTS_TESTING_SHARD_CHANGE_SETTINGS_H_
#define SLUICE_TESTS_TESTING_SHARD_CHANGE_SETTINGS_H_

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "server/shard/shard.h"

namespace sluice {

inline absl::StatusOr<Step> ChangeConsistency(
    Shard& shard, const Consistency& consistency,
    const absl::optional<Consistency>& expected = absl::nullopt) {
  return shard.ChangeSettings(
      [&](RuntimeSettings& settings) { return settings.Propose(consistency, expected); });
}

inline absl::StatusOr<Step> ChangeLearningRate(Shard& shard, double rate) {
  return shard.ChangeSettings([&](RuntimeSettings& settings) { return settings.Propose(rate); });
}

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_SHARD_CHANGE_SETTINGS_H_
