#include "tests/testing/json.h"

#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"

namespace sluice {
namespace {

using google::protobuf::Value;

const Value* Find(const Value& value, const std::string& path) {
  const Value* at = &value;
  for (const auto& part : absl::StrSplit(path, '.')) {
    const std::string key(part);
    int index = 0;
    if (at->has_struct_value()) {
      const auto& fields = at->struct_value().fields();
      const auto found = fields.find(key);
      if (found == fields.end()) return nullptr;
      at = &found->second;
    } else if (at->has_list_value() && absl::SimpleAtoi(key, &index) &&
               index < at->list_value().values_size()) {
      at = &at->list_value().values(index);
    } else {
      return nullptr;
    }
  }
  return at;
}

Value ParseJson(const std::string& json) {
  Value value;
  const auto status = google::protobuf::util::JsonStringToMessage(json, &value);
  return status.ok() ? value : Value();
}

}  // namespace

std::string JsonAt(const std::string& json, const std::string& path) {
  const Value root = ParseJson(json);
  const Value* const value = Find(root, path);
  if (value == nullptr) return "absent";
  switch (value->kind_case()) {
    case Value::kStringValue:
      return value->string_value();
    case Value::kNumberValue:
      return absl::StrCat(value->number_value());
    case Value::kBoolValue:
      return value->bool_value() ? "true" : "false";
    case Value::kListValue:
      return absl::StrCat("[", value->list_value().values_size(), "]");
    case Value::kStructValue:
      return absl::StrCat("{", value->struct_value().fields_size(), "}");
    default:
      return "null";
  }
}

double JsonNumberAt(const std::string& json, const std::string& path) {
  const Value root = ParseJson(json);
  const Value* const value = Find(root, path);
  return value != nullptr && value->has_number_value() ? value->number_value() : std::nan("");
}

}  // namespace sluice
