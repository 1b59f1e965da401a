// Translates what a server saves in addition to its tensors, to and from
// proto/sluice/v1/durable.proto. Only this uses protobuf in server/durable.

#ifndef SLUICE_SERVER_DURABLE_FORMAT_SAVED_STATE_H_
#define SLUICE_SERVER_DURABLE_FORMAT_SAVED_STATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/state/shard_checkpoint.h"
#include "server/state/step_journal.h"

namespace sluice {

struct CheckpointHead;

// The state in a checkpoint, as JSON. `stripes` are the checksums of several servers' stripes,
// `row_files` the files of rows of one server.
std::string EncodeSavedState(const ShardCheckpoint& checkpoint,
                             const std::vector<uint64_t>& stripes = {},
                             absl::Span<const RowFile> row_files = {});

// Reads it back. The text may come from anywhere: DATA_LOSS says what is wrong with it. The
// returned checkpoint has null parameters and empty slots.
absl::StatusOr<ShardCheckpoint> DecodeSavedState(absl::string_view json);
// The same of a header that was read.
absl::StatusOr<ShardCheckpoint> DecodeSavedState(const CheckpointHead& head);

// How many rows of a table a step touches.
struct TableCount {
  uint32_t table = 0;  // its index in the layout
  uint64_t rows = 0;
};

// The state in a record of the journal, as bytes, and back; DATA_LOSS as above. `tables` are those
// that the step touches; null: they are not wanted.
std::string EncodeSavedStep(const StepRecord& record, absl::Span<const TableCount> tables = {});
absl::StatusOr<StepRecord> DecodeSavedStep(absl::string_view bytes,
                                           std::vector<TableCount>* tables = nullptr);

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_FORMAT_SAVED_STATE_H_
