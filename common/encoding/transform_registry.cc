#include "common/encoding/transform_registry.h"

#include <glog/logging.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/error.h"
#include "common/base/nearest.h"
#include "common/encoding/encoding.h"

namespace sluice {
namespace {

bool IsBuiltin(absl::string_view name) {
  const auto encoding = ParseEncoding(name);
  return encoding.ok() && encoding->transform != ValueTransform::kCustom;
}

}  // namespace

void TransformRegistry::AddBuiltin(ValueTransform transform,
                                   std::unique_ptr<const Transform> implementation) {
  CHECK(transform != ValueTransform::kCustom);
  builtin_[transform] = std::move(implementation);
}

void TransformRegistry::Add(absl::string_view name, std::unique_ptr<const Transform> transform) {
  CHECK(IsTransformName(name))
      << "\"" << Shown(name)
      << "\" cannot be the name of a transform; take 1 to 64 of a-z, 0-9, - and _";
  CHECK(!IsBuiltin(name)) << "there is a transform named " << name << " already";
  const size_t width = transform->width();
  CHECK(width == 1 || width == 2 || width == 4)
      << "values of " << name << " have " << width << " bytes, expected 1, 2 or 4";
  const bool added = custom_.emplace(std::string(name), std::move(transform)).second;
  CHECK(added) << "a transform named " << name << " was added already";
}

absl::StatusOr<const Transform*> TransformRegistry::Find(ValueTransform transform,
                                                         absl::string_view custom) const {
  if (transform != ValueTransform::kCustom) {
    const auto found = builtin_.find(transform);
    if (found != builtin_.end()) return found->second.get();
    return MakeError(Reason::kBadArgument,
                     absl::StrCat("transform ", static_cast<int>(transform), " is not known here"));
  }
  const auto found = custom_.find(std::string(custom));
  if (found != custom_.end()) return found->second.get();
  const auto append_name = [](std::string* out, const auto& entry) { out->append(entry.first); };
  std::vector<std::string> names;
  for (const auto& entry : builtin_) {
    Encoding encoding;
    encoding.transform = entry.first;
    const std::string name = EncodingName(encoding);
    names.push_back(name.substr(0, name.find(':')));  // without options
  }
  for (const auto& entry : custom_) names.push_back(entry.first);
  return MakeError(
      Reason::kBadArgument,
      absl::StrCat("no transform \"", Shown(custom), "\" is known here; expected ",
                   BuiltinTransformNames(), custom_.empty() ? "" : ", or registered: ",
                   absl::StrJoin(custom_, ", ", append_name), DidYouMean(custom, names)));
}

}  // namespace sluice
