// A dense tensor without LibTorch: what crosses the wire between a trainer and a model server.

#ifndef SLUICE_WORKER_CONNECTION_MODULE_PLAIN_TENSOR_H_
#define SLUICE_WORKER_CONNECTION_MODULE_PLAIN_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sluice {

enum class ElementType {
  kFloat32,
  kFloat64,
  kFloat16,
  kBFloat16,
  kInt64,
  kInt32,
  kUint8,
  kBool,  // a byte, 0 or 1
};

// The most bytes that the tensors of one call may have together.
inline constexpr size_t kMaxTensorBytes = size_t{64} << 20;

struct PlainTensor {
  ElementType type = ElementType::kFloat32;
  std::vector<int64_t> shape;
  // An input has it if the trainer needs its gradient, an output if it has a gradient.
  bool requires_grad = false;
  std::string data;  // row-major, little-endian
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_MODULE_PLAIN_TENSOR_H_
