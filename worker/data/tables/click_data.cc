#include "worker/data/tables/click_data.h"

#include <array>
#include <cmath>

#include "worker/data/tables/made_batch.h"
#include "worker/data/tables/sample_numbers.h"

namespace sluice {
namespace {

constexpr size_t kHidden = 3;  // numbers of a hidden vector

}  // namespace

ClickData::ClickData() : weights_(Normals(kHiddenSeed + kFields, kNumbers, 0.3F)) {
  for (uint64_t field = 0; field < kFields; ++field) {
    hidden_.push_back(Normals(kHiddenSeed + field, kIds * int64_t{kHidden}, 0.7F));
  }
  test_ = Samples(kTestSeed, FirstNumbers(kTestSamples));
}

Batch ClickData::MakeBatch(absl::Span<const int64_t> rows, int64_t epoch, int64_t /*step*/) const {
  return Samples(kTrainSeed, NumbersOf(rows, epoch, kSamples));
}

Batch ClickData::Samples(uint64_t seed, absl::Span<const int64_t> numbers) const {
  const size_t count = numbers.size();
  Batch batch;
  batch.form = {1, 1, kNumbers, 2};
  batch.inputs.resize(count * kNumbers);
  batch.ids.resize(count * kBag * kFields);
  batch.targets.resize(count);
  for (size_t i = 0; i < count; ++i) {
    SampleNumbers random(seed, static_cast<uint64_t>(numbers[i]));
    for (size_t j = 0; j < kNumbers; ++j) batch.inputs[i * kNumbers + j] = random.Normal();
    for (size_t bag = i; bag < count * kFields; bag += count) {
      for (size_t j = bag * kBag; j < (bag + 1) * kBag; ++j) {
        batch.ids[j] = static_cast<int64_t>(zipf_.Draw([&] { return random.Uniform(); }));
      }
    }
    const double chance = 1 / (1 + std::exp(-OddsOf(batch, i)));
    batch.targets[i] = random.Uniform() < chance ? 1.0F : 0.0F;
  }
  return batch;
}

std::vector<float> ClickData::OddsOf(const Batch& batch) const {
  std::vector<float> odds;
  for (size_t i = 0; i < batch.targets.size(); ++i) odds.push_back(OddsOf(batch, i));
  return odds;
}

// The sum of the products of all pairs of hidden vectors, as in a factorization machine.
float ClickData::OddsOf(const Batch& batch, size_t sample) const {
  const size_t count = batch.targets.size();
  std::array<float, kHidden> sum = {};
  std::array<float, kHidden> squares = {};
  for (size_t field = 0; field < kFields; ++field) {
    const int64_t* const ids = &batch.ids[(field * count + sample) * kBag];
    for (size_t k = 0; k < kHidden; ++k) {
      float bag = 0;
      for (size_t j = 0; j < kBag; ++j) {
        bag += hidden_[field][static_cast<size_t>(ids[j]) * kHidden + k];
      }
      sum.at(k) += bag;
      squares.at(k) += bag * bag;
    }
  }
  float odds = 0;
  for (size_t j = 0; j < kNumbers; ++j) odds += weights_[j] * batch.inputs[sample * kNumbers + j];
  for (size_t k = 0; k < kHidden; ++k) odds += 0.5F * (sum.at(k) * sum.at(k) - squares.at(k));
  return odds;
}

}  // namespace sluice
