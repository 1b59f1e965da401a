#include "worker/data/batch.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Images of 2 channels, 2 rows and 3 columns. Pixel i of image n is 12 · n + i.
Dataset SmallImages(int64_t count) {
  Dataset data;
  data.form = {2, 2, 3, 10};
  data.normalization = {{0, 1}, {0.5F, 2}};
  data.images.resize(count * data.form.elements());
  std::iota(data.images.begin(), data.images.end(), 0);
  for (int64_t i = 0; i < count; ++i) data.labels.push_back(static_cast<uint8_t>(i));
  return data;
}

// One grey image of 5 x 5 whose pixels are 10, 11, 12 and so on, so that 0 is padding alone.
Dataset OneImage() {
  Dataset data;
  data.form = {1, 5, 5, 10};
  data.normalization = {{0, 1.0F / 255}};
  data.images.resize(25);
  std::iota(data.images.begin(), data.images.end(), 10);
  data.labels = {0};
  return data;
}

// What the pixels were before they were normalized as those of OneImage().
std::vector<int> Pixels(const Batch& batch) {
  std::vector<int> pixels;
  for (const float input : batch.inputs) pixels.push_back(static_cast<int>(input + 0.5F));
  return pixels;
}

TEST(BatchTest, NormalizesEachChannelByItself) {
  const Batch batch = MakeBatch(SmallImages(3), {2, 0});
  EXPECT_THAT(batch.labels, ElementsAre(2, 0));
  EXPECT_EQ(batch.form.channels, 2);
  ASSERT_EQ(batch.inputs.size(), 24u);
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(batch.inputs[i], static_cast<float>(24 + i) / 255.0F);
    EXPECT_EQ(batch.inputs[6 + i], (static_cast<float>(30 + i) / 255.0F - 0.5F) / 2);
    EXPECT_EQ(batch.inputs[12 + i], static_cast<float>(i) / 255.0F);
  }
}

TEST(BatchTest, FillsWhatSparseRowsLeaveOutWithZeros) {
  Dataset data;
  data.form = {1, 1, 4, 2};
  data.features = {{0, 2, 2, 3}, {0, 3, 1}, {5, 6, 7}};
  data.labels = {0, 1, 1};
  const Batch batch = MakeBatch(data, {2, 1, 0});
  EXPECT_THAT(batch.inputs, ElementsAre(0, 7, 0, 0, 0, 0, 0, 0, 5, 0, 0, 6));
  EXPECT_THAT(batch.labels, ElementsAre(1, 1, 0));
}

TEST(AugmentationTest, ChangesNothingUnlessAskedTo) {
  const Dataset data = OneImage();
  EXPECT_EQ(MakeAugmentedBatch(data, {0}, Augmentation(), 3).inputs, MakeBatch(data, {0}).inputs);
}

// Every image is the original, moved by at most the padding in each direction, and perhaps
// mirrored.
TEST(AugmentationTest, CropsAndMirrorsInEveryWayThatThereIs) {
  const Dataset data = OneImage();
  std::set<std::vector<int>> expected;
  for (int down = -2; down <= 2; ++down) {
    for (int right = -2; right <= 2; ++right) {
      for (const bool mirror : {false, true}) {
        std::vector<int> pixels;
        for (int y = 0; y < 5; ++y) {
          for (int x = 0; x < 5; ++x) {
            const int row = y + down;
            const int column = (mirror ? 4 - x : x) + right;
            const bool inside = row >= 0 && row < 5 && column >= 0 && column < 5;
            pixels.push_back(inside ? 10 + 5 * row + column : 0);
          }
        }
        expected.insert(pixels);
      }
    }
  }
  EXPECT_EQ(expected.size(), 50u);
  std::set<std::vector<int>> seen;
  for (int epoch = 0; epoch < 1000; ++epoch) {
    seen.insert(Pixels(MakeAugmentedBatch(data, {0}, {2, true, 1}, epoch)));
  }
  EXPECT_EQ(seen, expected);
}

TEST(AugmentationTest, MirrorsHalfOfTheImages) {
  const Dataset data = OneImage();
  const std::vector<int> original = Pixels(MakeBatch(data, {0}));
  int kept = 0;
  for (int epoch = 0; epoch < 1000; ++epoch) {
    kept += Pixels(MakeAugmentedBatch(data, {0}, {0, true, 1}, epoch)) == original ? 1 : 0;
  }
  EXPECT_GT(kept, 440);
  EXPECT_LT(kept, 560);
}

TEST(AugmentationTest, FollowsFromSeedEpochAndRowAlone) {
  const Dataset data = SmallImages(8);
  const Augmentation augmentation = {1, true, 5};
  const Batch together = MakeAugmentedBatch(data, {0, 1, 2, 3, 4, 5, 6, 7}, augmentation, 2);
  for (int64_t row = 0; row < 8; ++row) {
    const Batch alone = MakeAugmentedBatch(data, {row}, augmentation, 2);
    EXPECT_TRUE(std::equal(alone.inputs.begin(), alone.inputs.end(),
                           together.inputs.begin() + row * data.form.elements()))
        << row;
  }
  const std::vector<int64_t> rows = {0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_NE(MakeAugmentedBatch(data, rows, augmentation, 3).inputs, together.inputs);
  EXPECT_NE(MakeAugmentedBatch(data, rows, {1, true, 6}, 2).inputs, together.inputs);
}

TEST(AugmentationTest, FitsImagesOnlyAndLessThanTheirSides) {
  EXPECT_THAT(CheckFits({4, true, 1}, OneImage()), IsOk());
  EXPECT_THAT(CheckFits({5, false, 1}, OneImage()),
              HasCode(absl::StatusCode::kInvalidArgument,
                      HasSubstr("the padding is 5, expected 0 to 4 for images of 5 x 5")));
  Dataset numbers;
  numbers.features = {{0, 0}, {}, {}};
  numbers.labels = {0};
  EXPECT_THAT(CheckFits(Augmentation(), numbers), IsOk());
  EXPECT_THAT(CheckFits({0, true, 1}, numbers),
              HasCode(absl::StatusCode::kInvalidArgument, HasSubstr("only images")));
}

}  // namespace
}  // namespace sluice
