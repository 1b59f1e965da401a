#include "common/encoding/transforms/builtin_transforms.h"

namespace sluice {

TransformRegistry BuiltinTransforms() {
  TransformRegistry registry;
  registry.AddBuiltin(ValueTransform::kFloat32, MakeFloat32Transform());
  registry.AddBuiltin(ValueTransform::kFloat16, MakeFloat16Transform());
  registry.AddBuiltin(ValueTransform::kBfloat16, MakeBfloat16Transform());
  registry.AddBuiltin(ValueTransform::kInt8, MakeInt8Transform());
  registry.AddBuiltin(ValueTransform::kSign, MakeSignTransform());
  registry.AddBuiltin(ValueTransform::kTopK, MakeTopKTransform());
  registry.AddBuiltin(ValueTransform::kRandomK, MakeRandomKTransform());
  registry.AddBuiltin(ValueTransform::kLowRank, MakeLowRankTransform());
  return registry;
}

}  // namespace sluice
