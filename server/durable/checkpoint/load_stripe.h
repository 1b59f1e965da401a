// Loads what a server has of a checkpoint into memory of its own.

#ifndef SLUICE_SERVER_DURABLE_CHECKPOINT_LOAD_STRIPE_H_
#define SLUICE_SERVER_DURABLE_CHECKPOINT_LOAD_STRIPE_H_

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint_contents.h"
#include "common/checkpoint/reading/stripe_reader.h"
#include "common/checkpoint/stripe_place.h"
#include "common/tensor/layout.h"
#include "server/state/stripe_checkpoint.h"

namespace sluice {

// Returns the stripe `place`, which is the reader's. It holds that and one piece of a file at a
// time, and checks every byte of the files that it reads. DATA_LOSS names the file that is missing
// or damaged. Other errors are FileSystem's. `on_read` hears after each piece of parameters or
// slots how many bytes it had; it may be empty. `whole` is the layout of the whole vector.
absl::StatusOr<StripeCheckpoint> LoadStripe(
    const StripeReader& reader, StripePlace place, const CheckpointSource& source,
    const Layout& whole, const std::function<void(uint64_t bytes)>& on_read = nullptr);

// Returns its rows alone, with null parameters. It checks every byte of the same files.
absl::StatusOr<StripeCheckpoint> LoadStripeRows(const StripeReader& reader,
                                                const CheckpointSource& source,
                                                const Layout& whole);

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_CHECKPOINT_LOAD_STRIPE_H_
