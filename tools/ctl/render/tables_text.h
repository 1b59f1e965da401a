// The tables of a model, and one row, as text.

#ifndef SLUICE_TOOLS_CTL_RENDER_TABLES_TEXT_H_
#define SLUICE_TOOLS_CTL_RENDER_TABLES_TEXT_H_

#include <string>

#include "sluice/v1/inspector.pb.h"

namespace sluice {

// A head line and one line for each table, each with its line end.
std::string TablesText(const v1::ListTablesResponse& tables);

// The rows of a table that are read most: a head line and one line for each.
std::string HottestText(const v1::TableState& state);

// A line on the row, one with its elements, and one for each slot.
std::string RowText(const v1::GetRowRequest& asked, const v1::GetRowResponse& row);

}  // namespace sluice

#endif  // SLUICE_TOOLS_CTL_RENDER_TABLES_TEXT_H_
