#include "worker/data/batch.h"

#include <algorithm>
#include <array>
#include <random>

#include "absl/strings/str_cat.h"

namespace sluice {
namespace {

// Where an image is cropped, relative to the original, and whether it is mirrored.
struct Draw {
  int64_t down = 0;
  int64_t right = 0;
  bool mirror = false;
};

// The value of each pixel of one channel.
using Levels = std::array<float, 256>;

Levels LevelsOf(const Normalization& normalization) {
  Levels levels;
  for (size_t pixel = 0; pixel < levels.size(); ++pixel) {
    levels.at(pixel) =
        (static_cast<float>(pixel) / 255.0F - normalization.mean) / normalization.deviation;
  }
  return levels;
}

// std::seed_seq is specified to the bit. Its numbers have 32 bits, so that the remainder prefers no
// number noticeably.
Draw DrawFor(const Augmentation& augmentation, int64_t epoch, int64_t row) {
  const auto low = [](uint64_t number) { return static_cast<uint32_t>(number); };
  const auto high = [](uint64_t number) { return static_cast<uint32_t>(number >> 32); };
  std::seed_seq sequence{low(augmentation.seed), high(augmentation.seed), low(epoch), low(row),
                         high(row)};
  std::array<uint32_t, 3> random;
  sequence.generate(random.begin(), random.end());
  const int64_t places = 2 * augmentation.padding + 1;
  return {random[0] % places - augmentation.padding, random[1] % places - augmentation.padding,
          augmentation.mirror && random[2] % 2 == 1};
}

// Writes one channel of one image.
void Transform(const uint8_t* from, const SampleForm& form, const Levels& levels, const Draw& draw,
               float* to) {
  for (int64_t y = 0; y < form.rows; ++y) {
    for (int64_t x = 0; x < form.columns; ++x) {
      const int64_t row = y + draw.down;
      const int64_t column = (draw.mirror ? form.columns - 1 - x : x) + draw.right;
      const bool inside = row >= 0 && row < form.rows && column >= 0 && column < form.columns;
      *to++ = levels.at(inside ? from[row * form.columns + column] : 0);
    }
  }
}

Batch EmptyBatch(const Dataset& data, absl::Span<const int64_t> rows) {
  Batch batch;
  batch.form = data.form;
  for (const int64_t row : rows) batch.labels.push_back(data.labels[row]);
  batch.inputs.resize(rows.size() * data.form.elements());
  return batch;
}

void FillFeatures(const SparseRows& features, absl::Span<const int64_t> rows, int64_t columns,
                  float* to) {
  for (const int64_t row : rows) {
    for (uint64_t i = features.begins[row]; i < features.begins[row + 1]; ++i) {
      to[features.columns[i]] = features.values[i];
    }
    to += columns;
  }
}

template <typename DrawOf>
Batch MakeImages(const Dataset& data, absl::Span<const int64_t> rows, const DrawOf& draw_of) {
  Batch batch = EmptyBatch(data, rows);
  std::vector<Levels> levels;
  for (const Normalization& channel : data.normalization) levels.push_back(LevelsOf(channel));
  const int64_t pixels = data.form.rows * data.form.columns;
  float* to = batch.inputs.data();
  for (const int64_t row : rows) {
    const Draw draw = draw_of(row);
    const uint8_t* from = data.images.data() + row * data.form.elements();
    for (int64_t channel = 0; channel < data.form.channels; ++channel) {
      Transform(from, data.form, levels.at(channel), draw, to);
      from += pixels;
      to += pixels;
    }
  }
  return batch;
}

}  // namespace

absl::Status CheckFits(const Augmentation& augmentation, const Dataset& data) {
  if (!augmentation.changes_images()) return absl::OkStatus();
  if (data.images.empty()) {
    return absl::InvalidArgumentError(
        "only images can be cropped or mirrored, expected no "
        "augmentation of these samples");
  }
  const int64_t side = std::min(data.form.rows, data.form.columns);
  if (augmentation.padding >= 0 && augmentation.padding < side) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the padding is ", augmentation.padding,
                                                 ", expected 0 to ", side - 1, " for images of ",
                                                 data.form.rows, " x ", data.form.columns));
}

Batch MakeBatch(const Dataset& data, absl::Span<const int64_t> rows) {
  if (!data.images.empty()) {
    return MakeImages(data, rows, [](int64_t) { return Draw(); });
  }
  Batch batch = EmptyBatch(data, rows);
  FillFeatures(data.features, rows, data.form.columns, batch.inputs.data());
  return batch;
}

Batch MakeAugmentedBatch(const Dataset& data, absl::Span<const int64_t> rows,
                         const Augmentation& augmentation, int64_t epoch) {
  if (!augmentation.changes_images()) return MakeBatch(data, rows);
  return MakeImages(data, rows, [&](int64_t row) { return DrawFor(augmentation, epoch, row); });
}

}  // namespace sluice
