#include "tools/ctl/render/json.h"

#include <google/protobuf/util/json_util.h>

namespace sluice {

std::string JsonLine(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  std::string json;
  const auto printed = google::protobuf::util::MessageToJsonString(message, &json, options);
  if (!printed.ok()) return "{}\n";  // only for an Any of unknown type, which these have not
  return json + "\n";
}

}  // namespace sluice
