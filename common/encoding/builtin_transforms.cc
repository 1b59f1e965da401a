#include "common/encoding/builtin_transforms.h"

#include <glog/logging.h>

namespace sluice {

const Transform& BuiltinTransform(ValueTransform transform) {
  switch (transform) {
    case ValueTransform::kFloat32:
      return Float32Transform();
    case ValueTransform::kFloat16:
      return Float16Transform();
    case ValueTransform::kBfloat16:
      return Bfloat16Transform();
    case ValueTransform::kInt8:
      return Int8Transform();
    case ValueTransform::kSign:
      return SignTransform();
    case ValueTransform::kTopK:
      return TopKTransform();
    case ValueTransform::kRandomK:
      return RandomKTransform();
    case ValueTransform::kLowRank:
      return LowRankTransform();
    case ValueTransform::kCustom:
      break;
  }
  LOG(FATAL) << "not one of Sluice's own transforms";
}

}  // namespace sluice
