#include "tests/scripts/state_words.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "google/protobuf/duration.pb.h"

namespace sluice {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

std::string MessageWords(const Message& message) {
  if (message.GetDescriptor()->full_name() != "google.protobuf.Duration") return "set";
  google::protobuf::Duration length;
  length.CopyFrom(message);
  return absl::FormatDuration(absl::Seconds(length.seconds()) + absl::Nanoseconds(length.nanos()));
}

// One element, or the field if it is not repeated.
std::string ValueWords(const Message& message, const FieldDescriptor& field, int index) {
  const auto& in = *message.GetReflection();
  const bool many = field.is_repeated();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32:
      return absl::StrCat(many ? in.GetRepeatedUInt32(message, &field, index)
                               : in.GetUInt32(message, &field));
    case FieldDescriptor::CPPTYPE_UINT64:
      return absl::StrCat(many ? in.GetRepeatedUInt64(message, &field, index)
                               : in.GetUInt64(message, &field));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return absl::StrCat(many ? in.GetRepeatedDouble(message, &field, index)
                               : in.GetDouble(message, &field));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return absl::StrCat(many ? in.GetRepeatedFloat(message, &field, index)
                               : in.GetFloat(message, &field));
    case FieldDescriptor::CPPTYPE_BOOL:
      return (many ? in.GetRepeatedBool(message, &field, index) : in.GetBool(message, &field))
                 ? "true"
                 : "false";
    case FieldDescriptor::CPPTYPE_ENUM:
      return (many ? in.GetRepeatedEnum(message, &field, index) : in.GetEnum(message, &field))
          ->name();
    case FieldDescriptor::CPPTYPE_STRING:
      return many ? in.GetRepeatedString(message, &field, index) : in.GetString(message, &field);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return MessageWords(many ? in.GetRepeatedMessage(message, &field, index)
                               : in.GetMessage(message, &field));
    default:
      return "a type that scripts do not know";
  }
}

}  // namespace

std::string FieldWords(const Message& message, const std::string& path) {
  const std::pair<std::string, std::string> split = absl::StrSplit(path, absl::MaxSplits('.', 1));
  const FieldDescriptor* const field = message.GetDescriptor()->FindFieldByName(split.first);
  if (field == nullptr) return absl::StrCat("no field ", split.first);
  const auto& in = *message.GetReflection();
  if (field->has_presence() && !in.HasField(message, field)) return "absent";
  const int count = field->is_repeated() ? in.FieldSize(message, field) : 1;
  if (count == 0 && !split.second.empty()) {  // a path that nobody follows is wrong all the same
    const bool inner = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    const bool known = inner && field->message_type()->FindFieldByName(std::string(
                                    split.second.substr(0, split.second.find('.')))) != nullptr;
    if (!known) return absl::StrCat("no field ", split.second);
  }
  std::vector<std::string> words;
  for (int i = 0; i < count; ++i) {
    if (split.second.empty()) {
      words.push_back(ValueWords(message, *field, i));
      continue;
    }
    const Message& inner = field->is_repeated() ? in.GetRepeatedMessage(message, field, i)
                                                : in.GetMessage(message, field);
    words.push_back(FieldWords(inner, split.second));
  }
  return absl::StrJoin(words, " ");
}

}  // namespace sluice
