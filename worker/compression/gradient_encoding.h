// How a worker encodes its gradients.

#ifndef SLUICE_WORKER_COMPRESSION_GRADIENT_ENCODING_H_
#define SLUICE_WORKER_COMPRESSION_GRADIENT_ENCODING_H_

#include <cstdint>

#include "common/encoding/encoding_plan.h"
#include "common/encoding/transforms/builtin_transforms.h"
#include "common/trace/trace.h"

namespace sluice {

struct GradientEncoding {
  EncodingChoice choice;
  bool error_feedback = true;  // matters for lossy encodings and momentum correction
  float momentum = 0;          // the optimizer's, if the choice corrects momentum
  // Random numbers depend only on this seed, the worker, the push and the chunk.
  uint64_t seed = 1;
  Trace* trace = nullptr;  // of this process, if any; outlives the encoder
  TransformRegistry transforms = BuiltinTransforms();  // has all that the choice names
};

}  // namespace sluice

#endif  // SLUICE_WORKER_COMPRESSION_GRADIENT_ENCODING_H_
