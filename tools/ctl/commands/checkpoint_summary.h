// What `sluicectl checkpoint show` prints: what people want to know first of a checkpoint.

#ifndef SLUICE_TOOLS_CTL_COMMANDS_CHECKPOINT_SUMMARY_H_
#define SLUICE_TOOLS_CTL_COMMANDS_CHECKPOINT_SUMMARY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/state/shard_checkpoint.h"
#include "tools/ctl/commands/saved_table_figures.h"

namespace sluice {

// What is known of the files of a checkpoint.
struct CheckpointFiles {
  std::string path;                           // of the file with the state of the job
  absl::Time written = absl::InfinitePast();  // that file; unknown if infinite
  // Of the files that were found. Constants, and rows that earlier checkpoints have, are not in it.
  uint64_t bytes = 0;
  bool whole = false;                     // every file was read, and its checksums fit
  std::vector<TableFigures> tables = {};  // empty if there are none, or the files are damaged
};

// Lines with a label each. All texts of the checkpoint are escaped. The vectors of `state` may be
// absent; `now` is the time of day, for the age.
std::string SummaryText(const ShardCheckpoint& state, const CheckpointFiles& files, absl::Time now);

}  // namespace sluice

#endif  // SLUICE_TOOLS_CTL_COMMANDS_CHECKPOINT_SUMMARY_H_
