#include "common/checkpoint/reading/rows_format.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/little_endian.h"
#include "common/checkpoint/number_bytes.h"

namespace sluice {
namespace {

std::string LittleEndian32(uint32_t value) {
  std::string bytes(sizeof(value), '\0');
  PutLittleEndian(value, &bytes[0]);
  return bytes;
}

}  // namespace

void RowsBlock::Clear() {
  ids.clear();
  touched.clear();
  touches.clear();
  elements.clear();
  removed.clear();
}

std::string EncodeRowsPrefix(const std::string& description) {
  return absl::StrCat(kRowsMagic, LittleEndian64(description.size()), description);
}

std::string EncodeRowsBlock(const RowsBlock& block) {
  const auto waiting = std::count_if(block.touches.begin(), block.touches.end(),
                                     [](uint32_t touches) { return touches > 0; });
  return absl::StrCat(
      absl::StrCat(kRowsBlock, LittleEndian32(block.table), LittleEndian32(block.bucket),
                   LittleEndian32(static_cast<uint32_t>(block.ids.size())),
                   LittleEndian32(static_cast<uint32_t>(waiting)),
                   LittleEndian32(static_cast<uint32_t>(block.removed.size()))),
      NumberBytes(block.ids), NumberBytes(block.touched), NumberBytes(block.touches),
      NumberBytes(block.elements), NumberBytes(block.removed));
}

std::string EncodeRowsEnd(const RowsCounts& counts) {
  return absl::StrCat(kRowsEnd, LittleEndian32(0), LittleEndian64(counts.blocks),
                      LittleEndian64(counts.rows), LittleEndian64(counts.waiting),
                      LittleEndian64(counts.removed));
}

}  // namespace sluice
