// The bytes of a checkpoint: a safetensors file, which any reader of safetensors can open.
//
//   header   the state as JSON, under the metadata's key "sluice"
//   data     the model's tensors, under their names; then, for each slot of the optimizer and each
//            tensor of the model, a tensor "sluice:slot:<slot>:<name>"; then "sluice:checksum", the
//            XXH3-64 of all bytes of the file before it, little-endian
//
// The tensors are in the order of the layout, so the data is the shard's vectors, one after the
// other.
//
// If several servers save a checkpoint, this file has the state and no tensor but the checksum. The
// state names the checksums of the stripes' files (stripe_format.h), which have the values. It is
// written after them. The rows of tables are in files of their own (server/durable/rows), which are
// written before, too.

#ifndef SLUICE_SERVER_DURABLE_CHECKPOINT_CHECKPOINT_FORMAT_H_
#define SLUICE_SERVER_DURABLE_CHECKPOINT_CHECKPOINT_FORMAT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/progress_line.h"
#include "common/storage/file_system.h"
#include "common/storage/safetensors.h"
#include "server/durable/checkpoint/checked_file.h"
#include "server/state/checkpoint_source.h"
#include "server/state/shard_checkpoint.h"

namespace sluice {

// Appends a checkpoint to an empty file, and does not sync it. `row_files` has its rows.
// RESOURCE_EXHAUSTED if its header would be too long to be read again; tests set `most_header`.
// Other errors are FileSystem's.
absl::Status WriteCheckpoint(const ShardCheckpoint& checkpoint, WritableFile& file,
                             uint64_t most_header = kMostSafeTensorsHeader,
                             absl::Span<const RowFile> row_files = {});
// The same for one of several servers, whose stripes' files have these checksums.
absl::Status WriteStripedCheckpoint(const ShardCheckpoint& checkpoint,
                                    const std::vector<uint64_t>& stripes, WritableFile& file);

// Reads the state alone: null parameters, slots without values. If one server has saved the
// checkpoint, the values are not read and the checksum is not checked.
absl::StatusOr<ShardCheckpoint> ReadCheckpointState(const ReadableFile& file);
// Reads the values that one server has saved, and checks every byte. `state`, if not null, gets the
// state. DATA_LOSS if the file is not of `expected`, too.
absl::Status ReadCheckpointValues(const ReadableFile& file, const CheckpointSource& expected,
                                  const Layout& layout, const StripePieces& pieces,
                                  ShardCheckpoint* state = nullptr);

// Reads a checkpoint of one server and checks every byte. DATA_LOSS says what is wrong with the
// file. `listener` may be null.
absl::StatusOr<ShardCheckpoint> ReadCheckpoint(const ReadableFile& file,
                                               const ReadListener& listener = nullptr);

// The same. `output` says how far it is; `path` names the file there.
absl::StatusOr<ShardCheckpoint> ReadCheckpoint(const ReadableFile& file, const std::string& path,
                                               const ProgressOutput& output);

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_CHECKPOINT_CHECKPOINT_FORMAT_H_
