// What a program has given for its next push.

#ifndef SLUICE_WORKER_C_NEXT_PUSH_H_
#define SLUICE_WORKER_C_NEXT_PUSH_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/protocol/optimizer_config.h"
#include "common/tensor/coverage.h"
#include "common/tensor/layout.h"
#include "common/tensor/running_means.h"
#include "worker/c/sluice.h"
#include "worker/client/gradient_fingerprints.h"
#include "worker/client/parameter_client.h"

namespace sluice {

// Externally synchronized.
class NextPush {
 public:
  // The references outlive this.
  NextPush(const Layout& layout, const OptimizerConfig& optimizer)
      : layout_(layout), optimizer_(optimizer), early_(layout.size()) {}

  // The options of a group have become these, for this push and later ones. See NoteOptions().
  absl::Status SetOptions(size_t group, absl::Span<const sluice_option> options);
  // All groups where they are not the optimizer's, if one has changed since the last call.
  absl::optional<ChangedOptions::Groups> TakeOptions();

  // Copies a row for each id, of that table's width. They replace earlier ones of the table; no id:
  // there are none.
  void SetRows(uint32_t table, absl::Span<const RowId> ids, const float* gradients);
  void SetMeans(RunningMeans means) { means_ = std::move(means); }
  RowGradients TakeRows();
  RunningMeans TakeMeans() { return std::exchange(means_, {}); }

  // Notes elements that are sent early, as they are now. INVALID_ARGUMENT if one of them was
  // already.
  absl::Status NoteEarly(uint64_t offset, absl::Span<const float> part);
  // FAILED_PRECONDITION if some of them were to be running means, or have changed in `gradient`.
  absl::Status CheckEarly(absl::Span<const float> gradient) const;
  void ForgetEarly();

 private:
  const Layout& layout_;
  const OptimizerConfig& optimizer_;
  ChangedOptions::Groups options_;
  bool options_changed_ = false;
  std::map<uint32_t, RowGradient> rows_;  // by table
  RunningMeans means_;
  GradientFingerprints fingerprints_;
  Coverage early_;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_C_NEXT_PUSH_H_
