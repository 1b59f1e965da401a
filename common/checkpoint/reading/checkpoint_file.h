// Reads the file that names a checkpoint: a safetensors file, which any reader of safetensors can
// open.
//
//   header   the state as JSON, under the metadata's key "sluice"
//   data     the model's tensors, under their names; then, for each slot of the optimizer and each
//            tensor of the model, a tensor "sluice:slot:<slot>:<name>"; then "sluice:checksum", the
//            XXH3-64 of all bytes of the file before it, little-endian
//
// The tensors are in the order of the layout, so the data is the server's vectors, one after the
// other.
//
// If several servers save a checkpoint, this file has the state and no tensor but the checksum. The
// state names the checksums of the stripes' files (stripe_file.h), which have the values. It is
// written after them. The rows of tables are in files of their own (rows_format.h), which are
// written before, too.

#ifndef SLUICE_COMMON_CHECKPOINT_READING_CHECKPOINT_FILE_H_
#define SLUICE_COMMON_CHECKPOINT_READING_CHECKPOINT_FILE_H_

#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint_contents.h"
#include "common/checkpoint/reading/checked_reader.h"
#include "common/storage/file_system.h"
#include "common/tensor/layout.h"

namespace sluice {

// Reads what the file says of the checkpoint. If one server has saved it, the values are not read
// and the checksum is not checked. DATA_LOSS says what is wrong with the file.
absl::StatusOr<CheckpointContents> ReadContents(const ReadableFile& file);

// Reads the values that one server has saved, and checks every byte. The pieces are to be used only
// if it returns OK. `contents`, if not null, gets what the file says. DATA_LOSS if the file is not
// of `expected`, too.
absl::Status ReadCheckpointValues(const ReadableFile& file, const CheckpointSource& expected,
                                  const Layout& layout, const StripePieces& pieces,
                                  CheckpointContents* contents = nullptr);

}  // namespace sluice

#endif  // SLUICE_COMMON_CHECKPOINT_READING_CHECKPOINT_FILE_H_
