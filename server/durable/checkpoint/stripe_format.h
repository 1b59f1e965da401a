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
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/storage/file_system.h"
#include "common/tensor/layout.h"
#include "server/state/stripe_checkpoint.h"

namespace sluice {

// Which stripe of which checkpoint.
struct StripeName {
  std::string job_id;
  Incarnation incarnation;
  Step step;
  uint32_t stripe = 0;
  uint32_t stripes = 1;

  // "stripe-<incarnation>-<step>-<stripe>-of-<stripes>.safetensors"
  std::string FileName() const;
};

// Appends a stripe to an empty file, and does not sync it. `layout` is that of the whole vector.
// Returns the XXH3-64 of the file. RESOURCE_EXHAUSTED if its header would be too long to be read
// again. Other errors are FileSystem's.
absl::StatusOr<uint64_t> WriteStripe(const StripeName& name, const Layout& layout,
                                     const StripeCheckpoint& checkpoint, WritableFile& file);

// What is expected of a stripe's file.
struct ExpectedStripe {
  StripeName name;
  const Layout& layout;  // of the whole vector
  std::vector<std::string> slots;
  uint64_t optimizer_steps = 0;
  uint64_t checksum = 0;  // WriteStripe()'s
};

// Gets the values of the file piece by piece, in order. Vector 0 is the parameters, the slots
// follow. `offset` counts elements of the stripe.
using StripePieces =
    std::function<void(size_t vector, uint64_t offset, absl::Span<const float> values)>;

// Reads a stripe and checks every byte. It holds one piece of at most 1 MiB at a time. The pieces
// are to be used only if it returns OK. DATA_LOSS says what the file is, and what was expected.
absl::Status ReadStripe(const ReadableFile& file, const ExpectedStripe& expected,
                        const StripePieces& pieces);

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_CHECKPOINT_STRIPE_FORMAT_H_
