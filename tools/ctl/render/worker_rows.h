// The workers of a job as rows: what `sluicectl workers` and `sluicectl top` show and sort.

#ifndef SLUICE_TOOLS_CTL_RENDER_WORKER_ROWS_H_
#define SLUICE_TOOLS_CTL_RENDER_WORKER_ROWS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "sluice/v1/inspector.pb.h"
#include "tools/ctl/render/text.h"

namespace sluice {

// What the server said at one moment.
struct Sample {
  absl::Time at;  // by a monotonic clock
  v1::ServerState state;
  v1::ListWorkersResponse workers;
};

struct WorkerRow {
  v1::Worker worker;
  absl::optional<double> rate;             // accepted pushes per second between two samples
  absl::optional<v1::AwaitedWorker> wait;  // if others wait for it
};

// The rows of `now`, in the order of names. `earlier` is null or of the same server; rates come
// from the difference.
std::vector<WorkerRow> RowsOf(const Sample& now, const Sample* earlier = nullptr);

// Whether the worker takes part: it has neither left nor been evicted.
bool TakesPart(const v1::Worker& worker);

enum class SortKey { kName, kStep, kLag, kRate, kLoss, kAccepted, kStale, kSeen, kWaits };

// "name", "step", … in the order of SortKey.
const std::vector<std::string>& SortNames();
// INVALID_ARGUMENT lists the names.
absl::StatusOr<SortKey> ParseSortKey(absl::string_view name);

// Names in the order of the alphabet, numbers from the largest on; rows that are equal keep their
// order. A loss that is not a number comes first.
void SortRows(SortKey key, std::vector<WorkerRow>& rows);

// Columns that fit a terminal of 100 characters if names are short. The first is the name. RATE is
// there only if rates are known.
std::vector<Column> WorkerColumns(bool rates);
std::vector<std::string> WorkerCells(const WorkerRow& row, bool rates);

}  // namespace sluice

#endif  // SLUICE_TOOLS_CTL_RENDER_WORKER_ROWS_H_
