#include "common/checkpoint/reading/rows_header.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/tensor/table_spec.h"
#include "sluice/v1/durable.pb.h"

namespace sluice {
namespace {

constexpr size_t kMostRowSlots = 8;     // an optimizer has at most 3
constexpr uint32_t kMostServers = 256;  // of a job

absl::Status Check(const RowsTable& table) {
  if (table.width > 0 && table.width <= TableSpec::kMaxWidth &&
      table.slots.size() <= kMostRowSlots) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat(
      "its header has a table of rows of ", table.width, " elements and ", table.slots.size(),
      " slots, expected 1 to ", TableSpec::kMaxWidth, " and at most ", kMostRowSlots));
}

absl::Status Check(const RowsHeader& header) {
  const StripePlace& place = header.place;
  if (place.stripe >= place.stripes || place.stripes > kMostServers) {
    return absl::DataLossError(absl::StrCat("its header says server ", place.stripe, " of ",
                                            place.stripes, ", expected at most ", kMostServers,
                                            " servers"));
  }
  if (header.base.has_value() && *header.base >= header.step) {
    return absl::DataLossError(absl::StrCat("its header says step ", header.step.value(),
                                            " after step ", header.base->value()));
  }
  for (const RowsTable& table : header.tables) {
    const absl::Status sound = Check(table);
    if (!sound.ok()) return sound;
  }
  return absl::OkStatus();
}

}  // namespace

bool operator==(const RowsTable& a, const RowsTable& b) {
  return a.name == b.name && a.width == b.width && a.slots == b.slots;
}

std::string EncodeRowsHeader(const RowsHeader& header) {
  v1::SavedRows rows;
  rows.set_job_id(header.job_id);
  rows.set_incarnation(header.incarnation.value());
  rows.set_step(header.step.value());
  if (header.base.has_value()) rows.set_base_step(header.base->value());
  rows.set_server(header.place.stripe);
  rows.set_servers(header.place.stripes);
  for (const RowsTable& table : header.tables) {
    v1::SavedTable& saved = *rows.add_tables();
    saved.set_name(table.name);
    saved.set_width(table.width);
    for (const std::string& slot : table.slots) saved.add_slots(slot);
  }
  return rows.SerializeAsString();
}

absl::StatusOr<RowsHeader> DecodeRowsHeader(absl::string_view bytes) {
  v1::SavedRows rows;
  if (!rows.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::DataLossError("its header is not a valid SavedRows");
  }
  RowsHeader header;
  header.job_id = rows.job_id();
  header.incarnation = Incarnation(rows.incarnation());
  header.step = Step(rows.step());
  if (rows.has_base_step()) header.base = Step(rows.base_step());
  header.place = {rows.server(), rows.servers()};
  for (const v1::SavedTable& saved : rows.tables()) {
    header.tables.push_back(
        {saved.name(), saved.width(), RowSlots(saved.slots().begin(), saved.slots().end())});
  }
  const absl::Status sound = Check(header);
  if (!sound.ok()) return sound;
  return header;
}

}  // namespace sluice
