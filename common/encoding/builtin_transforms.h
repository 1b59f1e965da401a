// Sluice's own transforms.

#ifndef SLUICE_COMMON_ENCODING_BUILTIN_TRANSFORMS_H_
#define SLUICE_COMMON_ENCODING_BUILTIN_TRANSFORMS_H_

#include "common/encoding/transform.h"

namespace sluice {

// Of `transform`, which is not kCustom. Lives for ever.
const Transform& BuiltinTransform(ValueTransform transform);

// One each, in a file of its own.
const Transform& Float32Transform();
const Transform& Float16Transform();
const Transform& Bfloat16Transform();
const Transform& Int8Transform();
const Transform& SignTransform();
const Transform& TopKTransform();
const Transform& RandomKTransform();
const Transform& LowRankTransform();

}  // namespace sluice

#endif  // SLUICE_COMMON_ENCODING_BUILTIN_TRANSFORMS_H_
