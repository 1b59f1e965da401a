// Reads one server's stripe in a checkpoint of several servers: a safetensors file
//
//   header   the stripe's name, under keys of the metadata that begin with "sluice:"
//   data     the stripe's part of each tensor of the model, under the tensor's name, with the shape
//            [length] (Layout::OfStripe); then the slots and the checksum, as in checkpoint_file.h
//
// The layout of the whole vector is in the leader's file. So a reader brings it.

#ifndef SLUICE_COMMON_CHECKPOINT_READING_STRIPE_FILE_H_
#define SLUICE_COMMON_CHECKPOINT_READING_STRIPE_FILE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/checkpoint/checkpoint_contents.h"
#include "common/checkpoint/file_names.h"
#include "common/checkpoint/reading/checked_reader.h"
#include "common/storage/file_system.h"
#include "common/tensor/layout.h"

namespace sluice {

// Keys of the metadata. If the model has no tables, the two keys of rows are absent.
inline constexpr char kStripeJobKey[] = "sluice:job";
// The number of the stripe. No other file has this key.
inline constexpr char kStripeKey[] = "sluice:stripe";
// The files of rows that the server has saved beside this file: "STEP:CHECKSUM" for each, the
// oldest first, separated by spaces.
inline constexpr char kStripeRowsKey[] = "sluice:rows";
// The steps that the optimizers of the tables have made.
inline constexpr char kStripeRowStepsKey[] = "sluice:row_steps";

// The metadata of a stripe's file, without the keys of rows.
std::map<std::string, std::string> StripeMetadata(const StripeName& name, uint64_t optimizer_steps);
// The layout of the part of the vector that this stripe's server has.
Layout StripeLayout(const StripeName& name, const Layout& layout);

// The rows that a server has saved beside its stripe.
struct StripeRows {
  std::vector<RowFile> files;
  uint64_t steps = 0;  // RowTables::optimizer_steps()
};

// What is expected of a stripe's file.
struct ExpectedStripe {
  StripeName name;
  const Layout& layout;  // of the whole vector
  std::vector<std::string> slots;
  uint64_t optimizer_steps = 0;
  uint64_t checksum = 0;  // of the whole file
};

// Reads a stripe and checks every byte. It holds one piece of at most 1 MiB at a time. The pieces
// are to be used only if it returns OK. `rows`, if not null, gets what the header names. DATA_LOSS
// says what the file is, and what was expected.
absl::Status ReadStripe(const ReadableFile& file, const ExpectedStripe& expected,
                        const StripePieces& pieces, StripeRows* rows = nullptr);

}  // namespace sluice

#endif  // SLUICE_COMMON_CHECKPOINT_READING_STRIPE_FILE_H_
