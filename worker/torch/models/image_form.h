// The sizes of images that the convolutional networks take, and which variant a size gets.

#ifndef SLUICE_WORKER_TORCH_MODELS_IMAGE_FORM_H_
#define SLUICE_WORKER_TORCH_MODELS_IMAGE_FORM_H_

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "absl/strings/str_cat.h"
#include "worker/data/dataset.h"

namespace sluice {

// Images of this many pixels a side and more go through a network as its paper has it. Smaller ones
// go through the variant that is usual for CIFAR.
inline constexpr int64_t kPaperSide = 64;

inline bool IsLarge(const SampleForm& form) {
  return std::min(form.rows, form.columns) >= kPaperSide;
}

// Throws std::invalid_argument for images that are smaller than the networks can take.
inline void CheckImageForm(const std::string& model, const SampleForm& form) {
  constexpr int64_t kLeastSide = 16;
  if (std::min(form.rows, form.columns) >= kLeastSide) return;
  throw std::invalid_argument(absl::StrCat(
      model, " takes images of at least ", kLeastSide, " x ", kLeastSide, ", found samples of ",
      form.rows, " x ", form.columns, "; logistic and mlp take samples of any form"));
}

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_MODELS_IMAGE_FORM_H_
