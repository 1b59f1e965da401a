// Where the values of a checkpoint are, and what they are: all that a reader needs to know of it.

#ifndef SLUICE_COMMON_CHECKPOINT_CHECKPOINT_CONTENTS_H_
#define SLUICE_COMMON_CHECKPOINT_CHECKPOINT_CONTENTS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/tensor/layout.h"

namespace sluice {

// The names of the slots that the rows of a table have, in their order.
using RowSlots = std::vector<std::string>;

// A file of rows that a checkpoint needs.
struct RowFile {
  Step step;
  uint64_t checksum = 0;
};

// The values are in one file, if one server has saved the checkpoint, or in a file for each stripe
// of several servers.
struct CheckpointSource {
  std::string job_id;
  Incarnation incarnation;
  Step step;
  // The XXH3-64 of each stripe's file, of the number of servers that saved it; empty: one file.
  std::vector<uint64_t> stripes;
  std::vector<std::string> slots;  // the names of the optimizer's
  uint64_t optimizer_steps = 0;
};

// What the file says that names a checkpoint.
struct CheckpointContents {
  CheckpointSource source;
  std::shared_ptr<const Layout> layout;  // of the whole vector, and the tables
  // Of one server: the files of its rows, the oldest first, and RowTables::optimizer_steps(). Each
  // of several servers names its own in its stripe's file.
  std::vector<RowFile> row_files;
  uint64_t row_steps = 0;
  bool has_model = true;  // false: of a job whose workers have it, and these are a mean gradient
};

}  // namespace sluice

#endif  // SLUICE_COMMON_CHECKPOINT_CHECKPOINT_CONTENTS_H_
