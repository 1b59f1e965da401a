// Sluice's own transforms, and the registry that knows them all.

#ifndef SLUICE_COMMON_ENCODING_TRANSFORMS_BUILTIN_TRANSFORMS_H_
#define SLUICE_COMMON_ENCODING_TRANSFORMS_BUILTIN_TRANSFORMS_H_

#include <memory>

#include "common/encoding/transform.h"
#include "common/encoding/transform_registry.h"

namespace sluice {

// A registry of all the transforms below and of no custom ones. Programs make one when they start,
// Add() their own transforms to it, and hand it to the server or to the worker.
TransformRegistry BuiltinTransforms();

// One factory for each transform. README.md in this folder's parent says what each one does.
std::unique_ptr<const Transform> MakeFloat32Transform();
std::unique_ptr<const Transform> MakeFloat16Transform();
std::unique_ptr<const Transform> MakeBfloat16Transform();
std::unique_ptr<const Transform> MakeInt8Transform();
std::unique_ptr<const Transform> MakeSignTransform();
std::unique_ptr<const Transform> MakeTopKTransform();
std::unique_ptr<const Transform> MakeRandomKTransform();
std::unique_ptr<const Transform> MakeLowRankTransform();

}  // namespace sluice

#endif  // SLUICE_COMMON_ENCODING_TRANSFORMS_BUILTIN_TRANSFORMS_H_
