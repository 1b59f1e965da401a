#include "server/durable/rows/saved_tables.h"

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/checkpoint/number_bytes.h"
#include "common/checkpoint/reading/held_table.h"
#include "common/storage/safetensors.h"
#include "common/tensor/tensor_chunk.h"

namespace sluice {
namespace {

// How many bytes are appended at once.
constexpr size_t kExportPiece = 1 << 20;

SafeTensorsHeader HeaderOf(const HeldTable& held, uint32_t width, const RowSlots& slots) {
  const uint64_t count = held.size();
  const bool large = count > 0 && held.id(count - 1) >> 63 != 0;
  SafeTensorsHeader header;
  header.metadata["format"] = "pt";  // other readers of safetensors look for this
  header.tensors.push_back({"ids", large ? "U64" : "I64", {count}, 0, count * sizeof(RowId)});
  std::vector<std::string> names = {"rows"};
  names.insert(names.end(), slots.begin(), slots.end());
  for (const std::string& name : names) {
    const uint64_t begin = header.tensors.back().end;
    header.tensors.push_back(
        {name, "F32", {count, width}, begin, begin + count * width * sizeof(float)});
  }
  return header;
}

absl::Status WriteIds(const HeldTable& held, WritableFile& file) {
  std::vector<RowId> ids;
  ids.reserve(held.size());
  for (size_t i = 0; i < held.size(); ++i) ids.push_back(held.id(i));
  return ids.empty() ? absl::OkStatus() : file.Append(NumberBytes(ids));
}

// Writes one tensor: the elements [begin, begin + width) of each row with its slots.
absl::Status WriteColumns(const HeldTable& held, uint64_t begin, uint32_t width,
                          WritableFile& file) {
  std::string piece;
  for (size_t i = 0; i < held.size(); ++i) {
    const absl::string_view row = BytesOf(held.row(i).subspan(begin, width));
    piece.append(row.data(), row.size());
    if (piece.size() < kExportPiece && i + 1 < held.size()) continue;
    const absl::Status appended = file.Append(piece);
    if (!appended.ok()) return appended;
    piece.clear();
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<RowFigures>> CountRows(const SavedRows& rows, size_t tables) {
  std::vector<RowFigures> figures(tables);
  const absl::Status counted = rows.ForEach([&](uint32_t table, const StoredRow& row) {
    ++(row.touches > 0 ? figures[table].waiting : figures[table].rows);
    figures[table].elements += row.elements.size();
  });
  if (!counted.ok()) return counted;
  return figures;
}

absl::Status ExportTable(const SavedRows& rows, uint32_t table, uint32_t width,
                         const RowSlots& slots, WritableFile& file) {
  const auto held = HeldTable::Read(rows, table, uint64_t{width} * (1 + slots.size()));
  if (!held.ok()) return held.status();
  absl::Status written = file.Append(EncodeSafeTensorsHeader(HeaderOf(*held, width, slots)));
  if (written.ok()) written = WriteIds(*held, file);
  for (uint64_t column = 0; column <= slots.size(); ++column) {
    if (written.ok()) written = WriteColumns(*held, column * width, width, file);
  }
  return written;
}

}  // namespace sluice
