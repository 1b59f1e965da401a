// The bytes of one server's stripe in a checkpoint of several servers: a safetensors file
//
//   header   the stripe's name, under keys of the metadata that begin with "sluice:"
//   data     the stripe's part of each tensor of the model, under the tensor's name, with the shape
//            [length] (Stripes::LayoutOf); then the slots and the checksum, as in
//            checkpoint_format.h
//
// The layout of the whole vector is in the sequencer's file. So a reader brings it.

#ifndef SLUICE_SERVER_DURABLE_CHECKPOINT_STRIPE_FORMAT_H_
#define SLUICE_SERVER_DURABLE_CHECKPOINT_STRIPE_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/storage/file_system.h"
#include "common/tensor/layout.h"
#include "server/durable/checkpoint/checked_file.h"
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

// The rows that a server has saved beside its stripe. The header of the stripe names their files,
// under the keys "sluice:rows", as "STEP:CHECKSUM", the oldest first, with spaces between, and
// "sluice:row_steps". Without tables it has no such keys.
struct StripeRows {
  std::vector<RowFile> files;
  uint64_t steps = 0;  // RowTables::optimizer_steps()
};

// Which stripe of which checkpoint.
struct StripeName {
  std::string job_id;
  Incarnation incarnation;
  Step step;
  uint32_t stripe = 0;
  uint32_t stripes = 1;

  // "stripe-<incarnation>-<step>-<stripe>-of-<stripes>.safetensors"
  std::string FileName() const;
  // Without the job's id. Absent if `file_name` is not the name of a stripe's file.
  static absl::optional<StripeName> Parse(absl::string_view file_name);
};

// Appends a stripe to an empty file, and does not sync it. `layout` is that of the whole vector,
// and `row_files` has the stripe's rows.
// Returns the XXH3-64 of the file. RESOURCE_EXHAUSTED if its header would be too long to be read
// again. Other errors are FileSystem's.
absl::StatusOr<uint64_t> WriteStripe(const StripeName& name, const Layout& layout,
                                     const StripeView& stripe, WritableFile& file,
                                     absl::Span<const RowFile> row_files = {});

// What is expected of a stripe's file.
struct ExpectedStripe {
  StripeName name;
  const Layout& layout;  // of the whole vector
  std::vector<std::string> slots;
  uint64_t optimizer_steps = 0;
  uint64_t checksum = 0;  // WriteStripe()'s
};

// Reads a stripe and checks every byte. It holds one piece of at most 1 MiB at a time. The pieces
// are to be used only if it returns OK. `rows`, if not null, gets what the header names. DATA_LOSS
// says what the file is, and what was expected.
absl::Status ReadStripe(const ReadableFile& file, const ExpectedStripe& expected,
                        const StripePieces& pieces, StripeRows* rows = nullptr);

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_CHECKPOINT_STRIPE_FORMAT_H_
