// The translator of what a server keeps on disk, but for tensors: to and from
// proto/sluice/v1/durable.proto.

#ifndef SLUICE_SERVER_DURABLE_FORMAT_SAVED_STATE_H_
#define SLUICE_SERVER_DURABLE_FORMAT_SAVED_STATE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/state/shard_checkpoint.h"
#include "server/state/step_journal.h"

namespace sluice {

// As JSON.
std::string EncodeSavedState(const ShardCheckpoint& checkpoint);

// Of text that anyone may have written: DATA_LOSS names what is wrong with it. The checkpoint's
// parameters are null, and its slots are empty.
absl::StatusOr<ShardCheckpoint> DecodeSavedState(absl::string_view json);

// Of the journal.
std::string EncodeSavedStep(const StepRecord& record);
absl::StatusOr<StepRecord> DecodeSavedStep(absl::string_view bytes);

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_FORMAT_SAVED_STATE_H_
