#include "common/encoding/transform.h"

#include <glog/logging.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "common/base/error.h"
#include "common/encoding/builtin_transforms.h"
#include "common/tensor/tensor_chunk.h"
#include "common/tensor/vector_math.h"

namespace sluice {
namespace {

constexpr size_t kLongestName = 64;

class CustomTransforms {
 public:
  void Add(absl::string_view name, std::unique_ptr<const Transform> transform) {
    absl::MutexLock lock(&mu_);
    const bool added = transforms_.emplace(std::string(name), std::move(transform)).second;
    CHECK(added) << "a transform named " << name << " is registered already";
  }

  absl::StatusOr<const Transform*> Find(absl::string_view name) const {
    absl::MutexLock lock(&mu_);
    const auto found = transforms_.find(std::string(name));
    if (found != transforms_.end()) return found->second.get();
    const auto append_name = [](std::string* out, const auto& entry) { out->append(entry.first); };
    return MakeError(Reason::kBadArgument,
                     absl::StrCat("no transform \"", Shown(name), "\" is known here; expected ",
                                  kBuiltinNames, transforms_.empty() ? "" : ", or registered: ",
                                  absl::StrJoin(transforms_, ", ", append_name)));
  }

 private:
  static constexpr absl::string_view kBuiltinNames =
      "float32, float16, bfloat16, int8, sign, top-k, random-k or low-rank";

  mutable absl::Mutex mu_;
  std::map<std::string, std::unique_ptr<const Transform>> transforms_ ABSL_GUARDED_BY(mu_);
};

CustomTransforms& Custom() {
  static auto* const transforms = new CustomTransforms();
  return *transforms;
}

bool IsName(absl::string_view name) {
  return !name.empty() && name.size() <= kLongestName &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '-' || c == '_';
         });
}

}  // namespace

bool Transform::EncodeIfFinite(absl::Span<const float> values, const Encoding& encoding,
                               const ChunkContext& context, ChunkEncoding* how,
                               std::string* bytes) const {
  if (FindNotFinite(AsPiece(values)).has_value()) return false;
  Encode(values, encoding, context, how, bytes);
  return true;
}

void RegisterTransform(absl::string_view name, std::unique_ptr<const Transform> transform) {
  CHECK(IsName(name) && name != "auto")
      << "\"" << Shown(name) << "\" is no name for a transform: 1 to 64 of a-z, 0-9, - and _";
  const auto taken = ParseEncoding(name);
  CHECK(!taken.ok()) << "there is a transform named " << name << " already";
  const size_t width = transform->width();
  CHECK(width == 1 || width == 2 || width == 4)
      << "values of " << name << " have " << width << " bytes, expected 1, 2 or 4";
  Custom().Add(name, std::move(transform));
}

absl::StatusOr<const Transform*> FindTransform(ValueTransform transform, absl::string_view custom) {
  if (transform == ValueTransform::kCustom) return Custom().Find(custom);
  if (transform < ValueTransform::kFloat32 || transform > ValueTransform::kCustom) {
    return MakeError(Reason::kBadArgument,
                     absl::StrCat("transform ", static_cast<int>(transform), " is not known here"));
  }
  return &BuiltinTransform(transform);
}

}  // namespace sluice
