#include "worker/torch/training/batch_tensors.h"

#include <memory>
#include <utility>

namespace sluice {

BatchTensors TensorsOf(Batch batch) {
  const auto owned = std::make_shared<Batch>(std::move(batch));
  const auto release = [owned](void*) {};
  const SampleForm& form = owned->form;
  const int64_t size = owned->size();
  return {torch::from_blob(owned->inputs.data(), {size, form.channels, form.rows, form.columns},
                           release, torch::kFloat32),
          torch::from_blob(owned->labels.data(), {size}, release, torch::kInt64)};
}

}  // namespace sluice
