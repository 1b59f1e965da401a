// A program that uses what was trained: how probable each class is of an image.
//
//   predict CHECKPOINT IMAGES INDEX
//
// CHECKPOINT is of a LeNet that was trained on Fashion-MNIST: a file of one server or of several,
// their --checkpoint-dir, which means its newest, or what `tools/sluicectl checkpoint export`
// wrote. IMAGES is an IDX file, plain or .gz. predict.py is the same in Python. Exit codes: 0 done;
// 1 failed; 2 bad command line.

#include <torch/torch.h>

#include <cstdint>
#include <iostream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "common/base/command_line.h"
#include "worker/data/batch.h"
#include "worker/data/idx_reader.h"
#include "worker/torch/models/models.h"
#include "worker/torch/state_dict.h"
#include "worker/torch/training/batch_tensors.h"

namespace {

// One of the images in an IDX file, as the model takes it.
absl::StatusOr<torch::Tensor> ReadImage(const char* path, int64_t index) {
  auto images = sluice::ReadIdx(path, 3);
  if (!images.ok()) return images.status();
  const int64_t count = images->dims[0];
  if (images->dims[1] != 28 || images->dims[2] != 28 || index < 0 || index >= count) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s holds images 0 to %d of %d x %d; expected 28 x 28 and number %d", path,
                        count - 1, images->dims[1], images->dims[2], index));
  }
  sluice::Dataset data;
  data.images = std::move(images->data);
  data.labels.resize(count);
  return sluice::TensorsOf(sluice::MakeBatch(data, {index})).inputs;
}

int Fail(const absl::Status& status) {
  std::cerr << sluice::CalledAs("predict") << ": " << status.message() << "\n";
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  int64_t index = 0;
  if (argc != 4 || !absl::SimpleAtoi(argv[3], &index)) {
    std::cerr << "usage: " << sluice::CalledAs("predict") << " CHECKPOINT IMAGES INDEX\n";
    return 2;
  }
  const auto model = sluice::MakeModel("lenet");  // or any module of your own
  const absl::Status loaded = sluice::LoadStateDict(argv[1], *model);
  if (!loaded.ok()) return Fail(loaded);
  const auto image = ReadImage(argv[2], index);
  if (!image.ok()) return Fail(image.status());

  const torch::NoGradGuard no_grad;
  model->eval();
  const torch::Tensor probabilities = torch::softmax(model->forward(*image), 1)[0];
  for (int64_t k = 0; k < probabilities.size(0); ++k) {
    std::cout << absl::StrFormat("class %d  %.4f\n", k, probabilities[k].item<float>());
  }
  return 0;
}
