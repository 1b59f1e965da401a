#include "worker/torch/training/gradient_group.h"

#include <vector>

namespace sluice {
namespace {

std::vector<torch::Tensor> FloatingBuffers(const torch::nn::Module& module) {
  std::vector<torch::Tensor> buffers;
  for (const torch::Tensor& buffer : module.buffers()) {
    if (buffer.is_floating_point()) buffers.push_back(buffer);
  }
  return buffers;
}

// The tensors one after the other in one.
torch::Tensor Flatten(const std::vector<torch::Tensor>& tensors) {
  std::vector<torch::Tensor> parts;
  parts.reserve(tensors.size());
  for (const torch::Tensor& tensor : tensors) parts.push_back(tensor.flatten());
  return torch::cat(parts);
}

void CopyBack(const torch::Tensor& flat, const std::vector<torch::Tensor>& tensors) {
  int64_t offset = 0;
  for (const torch::Tensor& tensor : tensors) {
    tensor.copy_(flat.narrow(0, offset, tensor.numel()).view_as(tensor));
    offset += tensor.numel();
  }
}

}  // namespace

void GradientGroup::Equalize(torch::nn::Module& module) {
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> tensors = module.parameters();
  for (const torch::Tensor& buffer : FloatingBuffers(module)) tensors.push_back(buffer);
  torch::Tensor flat = Flatten(tensors);
  Broadcast(flat);
  CopyBack(flat, tensors);
}

void GradientGroup::Average(torch::nn::Module& module) {
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> tensors = FloatingBuffers(module);
  for (const torch::Tensor& parameter : module.parameters()) {
    torch::Tensor& gradient = parameter.mutable_grad();
    if (!gradient.defined()) continue;
    if (gradient.layout() != torch::kStrided) gradient = gradient.to_dense();
    tensors.push_back(gradient);
  }
  torch::Tensor flat = Flatten(tensors);
  Sum(flat);
  flat.div_(world().size);
  CopyBack(flat, tensors);
}

}  // namespace sluice
