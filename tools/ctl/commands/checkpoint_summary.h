// What people want to know of a checkpoint first, in words.

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
  std::string path;                           // of the file that names it
  absl::Time written = absl::InfinitePast();  // that file; unknown if infinite
  uint64_t bytes = 0;                         // of all files that were found
  bool whole = true;
  std::vector<TableFigures> tables = {};  // empty if there are none, or the files are damaged
};

// Lines with a label each. All texts of the checkpoint are escaped. `state` needs no values; `now`
// is the time of day, for the age.
std::string SummaryText(const ShardCheckpoint& state, const CheckpointFiles& files, absl::Time now);

}  // namespace sluice

#endif  // SLUICE_TOOLS_CTL_COMMANDS_CHECKPOINT_SUMMARY_H_
