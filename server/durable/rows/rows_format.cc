#include "server/durable/rows/rows_format.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/little_endian.h"
#include "server/durable/format/number_bytes.h"
#include "server/durable/format/numbered_name.h"

namespace sluice {
namespace {

constexpr char kRowsPrefixOfName[] = "rows-";
constexpr char kRowsSuffix[] = ".sluice";

std::string SuffixOf(StripePlace place) {
  return absl::StrCat(PlaceSuffix(place.stripe, place.stripes), kRowsSuffix);
}

std::string LittleEndian32(uint32_t value) {
  std::string bytes(sizeof(value), '\0');
  PutLittleEndian(value, &bytes[0]);
  return bytes;
}

}  // namespace

std::string RowsName::FileName() const {
  return NumberedName(kRowsPrefixOfName, {incarnation, step}, SuffixOf(place));
}

absl::optional<RowsName> RowsName::Parse(absl::string_view file_name) {
  RowsName name;
  const auto place = FindPlaceSuffix(absl::StripSuffix(file_name, kRowsSuffix));
  if (place.has_value()) name.place = {place->first, place->second};
  const auto numbers = ParseNumberedName(kRowsPrefixOfName, file_name, SuffixOf(name.place));
  if (!numbers.has_value()) return absl::nullopt;
  name.incarnation = numbers->first;
  name.step = numbers->second;
  return name;
}

bool operator<(const RowsName& a, const RowsName& b) {
  return std::tie(a.incarnation, a.step, a.place.stripes, a.place.stripe) <
         std::tie(b.incarnation, b.step, b.place.stripes, b.place.stripe);
}

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
