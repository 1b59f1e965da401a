// Translates a model's layout, and ids of its tables' rows, to protobuf, and back.
//
// A message may come from anyone, so FromProto() checks every field; its error names the field, the
// range or the table that is wrong. ToProto() cannot fail. Any thread may call them.

#ifndef SLUICE_COMMON_WIRE_LAYOUT_H_
#define SLUICE_COMMON_WIRE_LAYOUT_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "common/protocol/protocol_types.h"
#include "common/tensor/layout.h"
#include "sluice/v1/table.pb.h"
#include "sluice/v1/tensor.pb.h"

namespace sluice {

inline constexpr size_t kMaxIdBytes = 4'000'000;  // of one RowIds message

v1::LayoutRange ToProto(const LayoutRange& range);
v1::Table ToProto(const TableSpec& table);
v1::Layout ToProto(const Layout& layout);
absl::StatusOr<Layout> FromProto(const v1::Layout& message);  // BAD_LAYOUT

// `rows` have at most kMaxIdBytes.
v1::RowIds ToProto(const RowIds& rows);
// BAD_ARGUMENT if `layout` has no such table, or the ids are not ascending.
absl::StatusOr<RowIds> FromProto(const v1::RowIds& message, const Layout& layout);

}  // namespace sluice

#endif  // SLUICE_COMMON_WIRE_LAYOUT_H_
