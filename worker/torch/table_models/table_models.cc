#include "worker/torch/table_models/table_models.h"

#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "worker/data/tables/load_table_data.h"
#include "worker/torch/table_models/dlrm.h"
#include "worker/torch/table_models/matrix_factorization.h"
#include "worker/torch/table_models/row_sources.h"
#include "worker/torch/table_models/wordnet_complex.h"

namespace sluice {
namespace {

template <typename Rows>
std::shared_ptr<TableModel> MakeWith(const std::string& name) {
  if (name == "dlrm") return std::make_shared<Dlrm<Rows>>();
  if (name == "matrix-factorization") return std::make_shared<MatrixFactorization<Rows>>();
  if (name == "wordnet") return std::make_shared<WordnetComplex<Rows>>();
  throw std::invalid_argument(absl::StrCat("no model with tables \"", name, "\"; known ones are ",
                                           absl::StrJoin(TableModelNames(), ", ")));
}

}  // namespace

std::shared_ptr<TableModel> MakeTableModel(const std::string& name, RowsAre rows) {
  return rows == RowsAre::kOnServers ? MakeWith<RowsOnServers>(name) : MakeWith<RowsHere>(name);
}

}  // namespace sluice
