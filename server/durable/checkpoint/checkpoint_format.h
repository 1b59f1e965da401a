// Writes a checkpoint, and reads what a server continues from. checkpoint_file.h has the format,
// and reads what other programs need.

#ifndef SLUICE_SERVER_DURABLE_CHECKPOINT_CHECKPOINT_FORMAT_H_
#define SLUICE_SERVER_DURABLE_CHECKPOINT_CHECKPOINT_FORMAT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/progress_line.h"
#include "common/checkpoint/checkpoint_contents.h"
#include "common/checkpoint/reading/checked_reader.h"
#include "common/storage/file_system.h"
#include "common/storage/safetensors.h"
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

// Reads a checkpoint of one server and checks every byte. DATA_LOSS says what is wrong with the
// file. `listener` may be null.
absl::StatusOr<ShardCheckpoint> ReadCheckpoint(const ReadableFile& file,
                                               const ReadListener& listener = nullptr);

// The same. `output` says how far it is; `path` names the file there.
absl::StatusOr<ShardCheckpoint> ReadCheckpoint(const ReadableFile& file, const std::string& path,
                                               const ProgressOutput& output);

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_CHECKPOINT_CHECKPOINT_FORMAT_H_
