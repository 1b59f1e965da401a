#include "worker/data/tables/load_table_data.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "worker/data/tables/cell_data.h"
#include "worker/data/tables/click_data.h"
#include "worker/data/tables/triple_data.h"

namespace sluice {
namespace {

using Loaded = absl::StatusOr<std::shared_ptr<const TableData>>;

constexpr char kDlrm[] = "dlrm";
constexpr char kMatrix[] = "matrix-factorization";
constexpr char kWordnet[] = "wordnet";
constexpr char kWordnetFolder[] = "/usr/share/wordnet";

Loaded ReadTriples(const std::string& folder) {
  auto triples = TripleData::Read(folder.empty() ? kWordnetFolder : folder);
  if (!triples.ok()) return triples.status();
  return std::make_shared<const TripleData>(*std::move(triples));
}

}  // namespace

std::vector<std::string> TableModelNames() { return {kDlrm, kMatrix, kWordnet}; }

bool IsTableModel(const std::string& name) {
  const std::vector<std::string> names = TableModelNames();
  return std::find(names.begin(), names.end(), name) != names.end();
}

Loaded LoadTableData(const std::string& model, const std::string& folder) {
  if (!IsTableModel(model)) {
    return absl::InvalidArgumentError(absl::StrCat("no model with tables \"", model,
                                                   "\"; known ones are ",
                                                   absl::StrJoin(TableModelNames(), ", ")));
  }
  if (model == kWordnet) return ReadTriples(folder);
  if (!folder.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("found --data-dir=", folder, ", and --model=", model,
                     " learns from data that it makes itself; leave the flag out"));
  }
  if (model == kDlrm) return std::make_shared<const ClickData>();
  return std::make_shared<const CellData>();
}

TrainingSamples SamplesOf(std::shared_ptr<const TableData> data) {
  TrainingSamples samples;
  samples.size = data->size();
  samples.make = [data = std::move(data)](absl::Span<const int64_t> rows, int64_t epoch,
                                          int64_t step) {
    return data->MakeBatch(rows, epoch, step);
  };
  return samples;
}

}  // namespace sluice
