// The arrays that hold a model's parameters, for peers that send one message per array.

#ifndef SLUICE_TOOLS_BENCH_HARNESS_LAYERS_H_
#define SLUICE_TOOLS_BENCH_HARNESS_LAYERS_H_

#include <cstdint>
#include <vector>

namespace sluice::bench {

// Elements of each parameter array, in the order of the forward pass: weights, biases, and the two
// arrays of each batch normalization.
std::vector<uint64_t> LeNetLayers();     // Caffe's: 431,080 elements, 1.7 MB
std::vector<uint64_t> ResNet18Layers();  // for CIFAR-10: 11,173,962 elements, 44.7 MB
std::vector<uint64_t> ResNet50Layers();  // for ImageNet: 25,557,032 elements, 102 MB

// Cuts a vector of `elements` in the proportions of the model above whose size is nearest as a
// ratio. Returns the sizes, which add up to `elements`; none of them is 0.
std::vector<uint64_t> LayersOf(uint64_t elements);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_HARNESS_LAYERS_H_
