#include "tools/ctl/render/tables_text.h"

#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/ctl/render/text.h"

namespace sluice {
namespace {

// Of 100 ids that were read, so many were rows.
std::string HitText(const v1::TableState& state) {
  if (state.reads() == 0) return "-";
  const double rate = static_cast<double>(state.hits()) / static_cast<double>(state.reads());
  return absl::StrFormat("%.1f %%", 100 * rate);
}

std::vector<std::string> CellsOf(const v1::TableState& state) {
  const v1::Table& table = state.table();
  return {Printable(table.name()),
          absl::StrCat(table.width()),
          state.optimizer(),
          absl::StrCat(state.rows()),
          absl::StrCat(state.rows_on_disk()),
          table.max_rows() == 0 ? "-" : absl::StrCat(table.max_rows()),
          absl::StrCat(state.waiting()),
          BytesText(state.bytes()),
          absl::StrCat(state.dropped()),
          absl::StrCat(state.removed()),
          HitText(state),
          absl::StrCat(std::llround(state.mean_age()))};
}

std::string StateText(const v1::GetRowResponse& row) {
  if (row.exists()) return absl::StrCat("last touched by step ", row.touched());
  if (row.touches() == 0) return "does not exist yet; its first value is shown";
  return absl::StrCat("waits for its admission, touched by ", CountText(row.touches(), "step"));
}

}  // namespace

std::string TablesText(const v1::ListTablesResponse& tables) {
  if (tables.tables().empty()) return "the model has no tables\n";
  std::vector<std::vector<std::string>> rows;
  for (const v1::TableState& state : tables.tables()) rows.push_back(CellsOf(state));
  return TableText({{"TABLE"},
                    {"WIDTH", true},
                    {"OPTIMIZER"},
                    {"ROWS", true},
                    {"ON DISK", true},
                    {"MOST", true},
                    {"WAITING", true},
                    {"MEMORY", true},
                    {"DROPPED", true},
                    {"REMOVED", true},
                    {"HITS", true},
                    {"AGE", true}},
                   rows);
}

std::string HottestText(const v1::TableState& state) {
  std::vector<std::vector<std::string>> rows;
  for (const v1::HotRow& row : state.hottest()) {
    rows.push_back({absl::StrCat(row.id()), absl::StrCat(row.reads())});
  }
  return rows.empty() ? "no row is read much more often than others\n"
                      : TableText({{"HOTTEST", true}, {"READS", true}}, rows);
}

std::string RowText(const v1::GetRowRequest& asked, const v1::GetRowResponse& row) {
  std::string text =
      absl::StrCat("row ", asked.id(), " of ", Printable(asked.table()), " at step ", row.step(),
                   ": ", StateText(row), "\nelements: ", NumbersText(row.elements()), "\n");
  for (const v1::RowSlot& slot : row.slots()) {
    absl::StrAppend(&text, Printable(slot.name()), ": ", NumbersText(slot.elements()), "\n");
  }
  return text;
}

}  // namespace sluice
