#include "tools/bench/harness/layers.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sluice::bench {
namespace {

using Layers = std::vector<uint64_t>;

uint64_t Sum(const Layers& layers) {
  return std::accumulate(layers.begin(), layers.end(), uint64_t{0});
}

// A convolution without bias, then its batch normalization.
void AddConvolution(Layers& layers, uint64_t from, uint64_t to, uint64_t kernel) {
  layers.insert(layers.end(), {to * from * kernel * kernel, to, to});
}

void AddLinear(Layers& layers, uint64_t from, uint64_t to) {
  layers.insert(layers.end(), {from * to, to});
}

void AddBasicBlock(Layers& layers, uint64_t from, uint64_t to) {
  AddConvolution(layers, from, to, 3);
  AddConvolution(layers, to, to, 3);
  if (from != to) AddConvolution(layers, from, to, 1);
}

void AddBottleneck(Layers& layers, uint64_t from, uint64_t width) {
  const uint64_t to = 4 * width;
  AddConvolution(layers, from, width, 1);
  AddConvolution(layers, width, width, 3);
  AddConvolution(layers, width, to, 1);
  if (from != to) AddConvolution(layers, from, to, 1);
}

// Returns the ratio of the larger size to the smaller.
double Distance(uint64_t a, uint64_t b) {
  return std::abs(std::log(static_cast<double>(a) / static_cast<double>(b)));
}

}  // namespace

Layers LeNetLayers() {
  Layers layers;
  AddLinear(layers, 5 * 5, 20);
  AddLinear(layers, 5 * 5 * 20, 50);
  AddLinear(layers, 4 * 4 * 50, 500);
  AddLinear(layers, 500, 10);
  return layers;
}

Layers ResNet18Layers() {
  Layers layers;
  AddConvolution(layers, 3, 64, 3);
  uint64_t from = 64;
  for (const uint64_t to : {64, 128, 256, 512}) {
    AddBasicBlock(layers, from, to);
    AddBasicBlock(layers, to, to);
    from = to;
  }
  AddLinear(layers, from, 10);
  return layers;
}

Layers ResNet50Layers() {
  constexpr uint64_t kWidths[] = {64, 128, 256, 512};
  constexpr int kBlocks[] = {3, 4, 6, 3};
  Layers layers;
  AddConvolution(layers, 3, 64, 7);
  uint64_t from = 64;
  for (int stage = 0; stage < 4; ++stage) {
    for (int block = 0; block < kBlocks[stage]; ++block) {
      AddBottleneck(layers, from, kWidths[stage]);
      from = 4 * kWidths[stage];
    }
  }
  AddLinear(layers, from, 1000);
  return layers;
}

Layers LayersOf(uint64_t elements) {
  const Layers models[] = {LeNetLayers(), ResNet18Layers(), ResNet50Layers()};
  const Layers& model = *std::min_element(
      std::begin(models), std::end(models), [&](const Layers& a, const Layers& b) {
        return Distance(Sum(a), elements) < Distance(Sum(b), elements);
      });
  const uint64_t whole = Sum(model);
  Layers layers;
  uint64_t model_end = 0, begin = 0;
  for (const uint64_t layer : model) {
    model_end += layer;
    const uint64_t end = model_end * elements / whole;
    if (end > begin) layers.push_back(end - begin);
    begin = end;
  }
  return layers;
}

}  // namespace sluice::bench
