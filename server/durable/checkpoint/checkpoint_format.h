// A checkpoint's bytes: a safetensors file that any of its readers opens.
//
//   header   the state as JSON, under the metadata's key "sluice"
//   data     the model's tensors, under their names; then, for each of the optimizer's slots, a
//            tensor "sluice:slot:<slot>:<name>" for each of the model's; then "sluice:checksum",
//            the XXH3-64 of all bytes of the file before it, little-endian
//
// All numbers are those of the shard's vectors, so that a checkpoint is its vectors one after the
// other.

#ifndef SLUICE_SERVER_DURABLE_CHECKPOINT_CHECKPOINT_FORMAT_H_
#define SLUICE_SERVER_DURABLE_CHECKPOINT_CHECKPOINT_FORMAT_H_

#include "absl/status/statusor.h"
#include "common/storage/file_system.h"
#include "server/state/shard_checkpoint.h"

namespace sluice {

// Appends to an empty file; does not sync it.
absl::Status WriteCheckpoint(const ShardCheckpoint& checkpoint, WritableFile& file);

// All of it, with nothing left unchecked: DATA_LOSS says what is wrong with the file.
absl::StatusOr<ShardCheckpoint> ReadCheckpoint(const ReadableFile& file);

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_CHECKPOINT_CHECKPOINT_FORMAT_H_
