// Writes one server's stripe in a checkpoint of several servers. stripe_file.h, which reads it, has
// the format.

#ifndef SLUICE_SERVER_DURABLE_CHECKPOINT_STRIPE_WRITER_H_
#define SLUICE_SERVER_DURABLE_CHECKPOINT_STRIPE_WRITER_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/checkpoint/checkpoint_contents.h"
#include "common/checkpoint/file_names.h"
#include "common/storage/file_system.h"
#include "common/tensor/layout.h"
#include "server/state/stripe_checkpoint.h"

namespace sluice {

// Appends a stripe to an empty file, and does not sync it. `layout` is that of the whole vector,
// and `row_files` has the stripe's rows.
// Returns the XXH3-64 of the file. RESOURCE_EXHAUSTED if its header would be too long to be read
// again. Other errors are FileSystem's.
absl::StatusOr<uint64_t> WriteStripe(const StripeName& name, const Layout& layout,
                                     const StripeCheckpoint& stripe, WritableFile& file,
                                     absl::Span<const RowFile> row_files = {});

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_CHECKPOINT_STRIPE_WRITER_H_
