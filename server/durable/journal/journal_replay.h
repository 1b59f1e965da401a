// Making steps again that are in a journal, and not in the checkpoint.

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

// Each life's number, and the step that it began at.
using Lives = std::map<Incarnation, Step>;

// Calls `replay` for each step that follows the checkpoint in the directory's segments, in order,
// and returns the last. A life's steps count up to where the next life began: what it wrote after
// that, the next one did not find. A record that is cut or damaged ends its segment, and the log
// tells; DATA_LOSS if a later segment begins after it.
absl::StatusOr<Step> ReplayJournal(FileSystem& files, const std::string& directory,
                                   const Lives& lives, const ShardCheckpoint& checkpoint,
                                   const std::function<void(const JournaledStep&)>& replay);

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_JOURNAL_JOURNAL_REPLAY_H_
