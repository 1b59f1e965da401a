// Reads the steps that are in a directory's journal and not in its checkpoint.

#ifndef SLUICE_SERVER_DURABLE_JOURNAL_JOURNAL_REPLAY_H_
#define SLUICE_SERVER_DURABLE_JOURNAL_JOURNAL_REPLAY_H_

#include <functional>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "common/storage/file_system.h"
#include "server/durable/journal/journal_format.h"
#include "server/state/shard_checkpoint.h"

namespace sluice {

// For each incarnation the step at which it began.
using IncarnationBegins = std::map<Incarnation, Step>;

// Makes a step of the journal again. The error says why it cannot be made.
using ReplayStep = std::function<absl::Status(const JournaledStep&)>;

// Calls `replay`, in order, for each step that follows the checkpoint in the directory's segments,
// and returns the last step. Of an incarnation, the steps up to the one at which the next
// incarnation began count, because the next one did not find any later steps. A record that is cut
// or damaged ends its segment, and the log says so. `begins` holds the incarnations after the
// checkpoint's. DATA_LOSS if a step is missing between two segments. FAILED_PRECONDITION if this
// build cannot make a step again: it cannot read the record, the record lacks terms of the step, or
// `replay` returns that error.
absl::StatusOr<Step> ReplayJournal(FileSystem& files, const std::string& directory,
                                   const IncarnationBegins& begins,
                                   const ShardCheckpoint& checkpoint, const ReplayStep& replay);

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_JOURNAL_JOURNAL_REPLAY_H_
