// Writes one server's stripe in a checkpoint of several servers. stripe_file.h, which reads it, has
// the format.

#ifndef SLUICE_SERVER_DURABLE_CHECKPOINT_STRIPE_WRITER_H_
#define SLUICE_SERVER_DURABLE_CHECKPOINT_STRIPE_WRITER_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/checkpoint/checkpoint_contents.h"
#include "common/checkpoint/file_names.h"
#include "common/storage/file_system.h"
#include "common/tensor/layout.h"
#include "server/snapshots/row_snapshot.h"
#include "server/state/stripe_checkpoint.h"

namespace sluice {

// The values of a stripe, which somebody else owns.
struct StripeView {
  StripeView(const StripeCheckpoint& stripe)  // NOLINT(google-explicit-constructor)
      : parameters(stripe.parameters->values.span()),
        slots(stripe.slots),
        optimizer_steps(stripe.optimizer_steps),
        rows(stripe.parameters->rows.get()),
        row_slots(stripe.row_slots),
        row_steps(stripe.row_steps) {}
  explicit StripeView(const ShardCheckpoint& checkpoint)
      : parameters(checkpoint.parameters->values.span()),
        slots(checkpoint.slots),
        optimizer_steps(checkpoint.optimizer_steps),
        rows(checkpoint.parameters->rows.get()),
        row_slots(checkpoint.row_slots),
        row_steps(checkpoint.row_steps) {}

  absl::Span<const float> parameters;
  absl::Span<const SlotCheckpoint> slots;
  uint64_t optimizer_steps;
  const RowSnapshot* rows;  // null without tables
  const std::vector<RowSlots>& row_slots;
  uint64_t row_steps;
};

// Appends a stripe to an empty file, and does not sync it. `layout` is that of the whole vector,
// and `row_files` has the stripe's rows.
// Returns the XXH3-64 of the file. RESOURCE_EXHAUSTED if its header would be too long to be read
// again. Other errors are FileSystem's.
absl::StatusOr<uint64_t> WriteStripe(const StripeName& name, const Layout& layout,
                                     const StripeView& stripe, WritableFile& file,
                                     absl::Span<const RowFile> row_files = {});

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_CHECKPOINT_STRIPE_WRITER_H_
