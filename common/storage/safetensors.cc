#include "common/storage/safetensors.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/error.h"
#include "common/base/little_endian.h"
#include "common/tensor/constant_tensor.h"

namespace sluice {
namespace {

using nlohmann::json;

constexpr char kMetadata[] = "__metadata__";
constexpr uint64_t kAlignment = 64;

absl::Status Broken(absl::string_view name, absl::string_view what) {
  return absl::DataLossError(absl::StrCat("tensor \"", Shown(name), "\" ", what));
}

// Returns whether `value` is a list of numbers that are not negative, and writes them to `numbers`.
bool ReadNumbers(const json& value, std::vector<uint64_t>* numbers) {
  if (!value.is_array()) return false;
  for (const json& number : value) {
    if (!number.is_number_unsigned()) return false;
    numbers->push_back(number.get<uint64_t>());
  }
  return true;
}

absl::StatusOr<SafeTensor> DecodeTensor(const std::string& name, const json& entry,
                                        uint64_t data_size) {
  SafeTensor tensor;
  tensor.name = name;
  std::vector<uint64_t> place;
  if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string() ||
      !entry.contains("shape") || !ReadNumbers(entry["shape"], &tensor.shape) ||
      !entry.contains("data_offsets") || !ReadNumbers(entry["data_offsets"], &place) ||
      place.size() != 2) {
    return Broken(name, "lacks a dtype, a shape or two data_offsets");
  }
  tensor.dtype = entry["dtype"].get<std::string>();
  const uint64_t element = ElementBytes(tensor.dtype);
  if (element == 0) return Broken(name, absl::StrCat("has the dtype ", Shown(tensor.dtype)));
  tensor.begin = place[0];
  tensor.end = place[1];
  if (tensor.begin > tensor.end || tensor.end > data_size ||
      BytesOf(tensor.shape, element, data_size) != tensor.end - tensor.begin) {
    return Broken(name, absl::StrCat("lies at [", tensor.begin, ", ", tensor.end,
                                     "), which does not fit its shape or the file's ", data_size,
                                     " bytes of data"));
  }
  return tensor;
}

absl::Status DecodeMetadata(const json& entry, std::map<std::string, std::string>* metadata) {
  if (!entry.is_object()) return absl::DataLossError("__metadata__ is not a JSON object");
  for (const auto& item : entry.items()) {
    if (!item.value().is_string()) {
      return absl::DataLossError(
          absl::StrCat("__metadata__ \"", Shown(item.key()), "\" is not a string"));
    }
    metadata->emplace(item.key(), item.value().get<std::string>());
  }
  return absl::OkStatus();
}

absl::Status CheckCovers(const std::vector<SafeTensor>& tensors, uint64_t data_size) {
  uint64_t end = 0;
  for (const SafeTensor& tensor : tensors) {
    if (tensor.begin != end) {
      return Broken(tensor.name, absl::StrCat("begins at ", tensor.begin, ", expected ", end));
    }
    end = tensor.end;
  }
  if (end == data_size) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("the tensors end at ", end, ", the file's data at ", data_size));
}

}  // namespace

// Written as text at once: a tree of many small tensors would take far more memory.
std::string EncodeSafeTensorsHeader(const SafeTensorsHeader& header) {
  std::string text(kSafeTensorsPrefix, ' ');
  char separator = '{';
  const auto begin_entry = [&](const std::string& name) {
    absl::StrAppend(&text, absl::string_view(&separator, 1), json(name).dump(), ":");
    separator = ',';
  };
  if (!header.metadata.empty()) {
    begin_entry(kMetadata);
    text += json(header.metadata).dump();
  }
  for (const SafeTensor& tensor : header.tensors) {
    begin_entry(tensor.name);
    absl::StrAppend(&text, "{\"data_offsets\":[", tensor.begin, ",", tensor.end,
                    "],\"dtype\":", json(tensor.dtype).dump(), ",\"shape\":[",
                    absl::StrJoin(tensor.shape, ","), "]}");
  }
  text += separator == '{' ? "{}" : "}";
  text.append((kAlignment - text.size() % kAlignment) % kAlignment, ' ');
  text.replace(0, kSafeTensorsPrefix, LittleEndian64(text.size() - kSafeTensorsPrefix));
  return text;
}

absl::StatusOr<uint64_t> DecodeSafeTensorsPrefix(absl::string_view prefix, uint64_t file_size) {
  const uint64_t length = FromLittleEndian64(prefix);
  if (length <= kMostSafeTensorsHeader && length <= file_size - kSafeTensorsPrefix) return length;
  return absl::DataLossError(absl::StrCat("its header claims to be ", length,
                                          " bytes long, but the file has ", file_size));
}

absl::StatusOr<SafeTensorsHeader> DecodeSafeTensorsJson(absl::string_view text,
                                                        uint64_t data_size) {
  const json root = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!root.is_object()) return absl::DataLossError("its header is not a JSON object");
  SafeTensorsHeader header;
  for (const auto& item : root.items()) {
    if (item.key() == kMetadata) {
      const absl::Status decoded = DecodeMetadata(item.value(), &header.metadata);
      if (!decoded.ok()) return decoded;
      continue;
    }
    auto tensor = DecodeTensor(item.key(), item.value(), data_size);
    if (!tensor.ok()) return tensor.status();
    header.tensors.push_back(*std::move(tensor));
  }
  std::sort(header.tensors.begin(), header.tensors.end(),
            [](const SafeTensor& a, const SafeTensor& b) {
              return std::make_pair(a.begin, a.end) < std::make_pair(b.begin, b.end);
            });
  const absl::Status covers = CheckCovers(header.tensors, data_size);
  if (!covers.ok()) return covers;
  return header;
}

}  // namespace sluice
