#include "server/durable/rows/saved_tables.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/types/span.h"
#include "common/storage/safetensors.h"
#include "common/tensor/tensor_chunk.h"
#include "server/durable/format/number_bytes.h"

namespace sluice {
namespace {

// How many bytes are appended at once.
constexpr size_t kExportPiece = 1 << 20;

// The rows of a table, as they come, and where each begins.
struct HeldTable {
  std::vector<std::pair<RowId, uint64_t>> places;  // ids, and offsets in `elements`
  std::vector<float> elements;
};

absl::StatusOr<HeldTable> Hold(const SavedRows& rows, uint32_t table) {
  HeldTable held;
  const absl::Status read = rows.ForEach([&](uint32_t of, const StoredRow& row) {
    if (of != table || row.touches > 0) return;
    held.places.emplace_back(row.id, held.elements.size());
    held.elements.insert(held.elements.end(), row.elements.begin(), row.elements.end());
  });
  if (!read.ok()) return read;
  std::sort(held.places.begin(), held.places.end());
  return held;
}

SafeTensorsHeader HeaderOf(const HeldTable& held, uint32_t width, const RowSlots& slots) {
  const uint64_t count = held.places.size();
  const bool large = count > 0 && held.places.back().first >> 63 != 0;
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
  ids.reserve(held.places.size());
  for (const auto& [id, offset] : held.places) ids.push_back(id);
  return ids.empty() ? absl::OkStatus() : file.Append(NumberBytes(ids));
}

// Writes one tensor: the elements [begin, begin + width) of each row with its slots.
absl::Status WriteColumns(const HeldTable& held, uint64_t begin, uint32_t width,
                          WritableFile& file) {
  std::string piece;
  for (size_t i = 0; i < held.places.size(); ++i) {
    const absl::string_view row =
        BytesOf(absl::MakeConstSpan(held.elements).subspan(held.places[i].second + begin, width));
    piece.append(row.data(), row.size());
    if (piece.size() < kExportPiece && i + 1 < held.places.size()) continue;
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
  const auto held = Hold(rows, table);
  if (!held.ok()) return held.status();
  absl::Status written = file.Append(EncodeSafeTensorsHeader(HeaderOf(*held, width, slots)));
  if (written.ok()) written = WriteIds(*held, file);
  for (uint64_t column = 0; column <= slots.size(); ++column) {
    if (written.ok()) written = WriteColumns(*held, column * width, width, file);
  }
  return written;
}

}  // namespace sluice
