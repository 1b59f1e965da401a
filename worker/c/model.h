// Sluice's own types of what sluice.h describes by structs.

#ifndef SLUICE_WORKER_C_MODEL_H_
#define SLUICE_WORKER_C_MODEL_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/protocol/optimizer_config.h"
#include "common/tensor/layout.h"
#include "common/tensor/table_spec.h"
#include "worker/c/sluice.h"
#include "worker/client/constant_memory.h"

namespace sluice {

// INVALID_ARGUMENT names the tensor and what is wrong with it. The model may have no tensors.
absl::StatusOr<Layout> LayoutOf(const sluice_model& model);

// OK if the model has tensors or tables. Otherwise INVALID_ARGUMENT names `set_tables`, the
// function that adds tables.
absl::Status CheckNotEmpty(absl::string_view set_tables, const Layout& layout);

// INVALID_ARGUMENT names the option and what is wrong with it.
absl::StatusOr<OptimizerConfig> ConfigOf(const sluice_optimizer& optimizer);

// Notes in `changed` that these options of a group have become others. INVALID_ARGUMENT names the
// option, or the group that `first` does not have; nothing is noted then. BAD_OPTIMIZER as
// CheckChanged().
absl::Status NoteOptions(const OptimizerConfig& first, size_t group,
                         absl::Span<const sluice_option> options, ChangedOptions::Groups* changed);

// Adds the tables to the layout, and their own optimizers to the config. INVALID_ARGUMENT and
// BAD_LAYOUT name the table and what is wrong with it.
absl::Status AddTables(absl::Span<const sluice_table> tables, Layout* layout,
                       OptimizerConfig* config);

// Adds the constants to the layout, and writes where their data lie. INVALID_ARGUMENT and
// BAD_LAYOUT name the constant and what is wrong with it.
absl::Status AddConstants(absl::Span<const sluice_constant> constants, Layout* layout,
                          ConstantMemory* memory);

// OK if the table is one of the layout's, and the ids ascend; INVALID_ARGUMENT says for `call` what
// is wrong.
absl::Status CheckRowIds(absl::string_view call, const Layout& layout, uint32_t table,
                         absl::Span<const RowId> ids);

// INVALID_ARGUMENT: `what` has NULL for a name.
absl::Status NoNameError(absl::string_view what);

// For ever, if `seconds` is negative.
absl::Duration DurationOf(double seconds);

}  // namespace sluice

#endif  // SLUICE_WORKER_C_MODEL_H_
