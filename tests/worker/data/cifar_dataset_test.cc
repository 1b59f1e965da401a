#include "worker/data/cifar_dataset.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"
#include "tests/worker/data/data_folder.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr size_t kPlane = 32 * 32;

// A record whose red pixels are `red`, the green ones one more, the blue ones two more.
Bytes Record(const Bytes& labels, uint8_t red) {
  Bytes bytes = labels;
  for (uint8_t plane = 0; plane < 3; ++plane) {
    bytes.insert(bytes.end(), kPlane, static_cast<uint8_t>(red + plane));
  }
  return bytes;
}

Bytes Joined(const std::vector<Bytes>& parts) {
  Bytes all;
  for (const Bytes& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

class CifarDatasetTest : public DataFolderTest {
 protected:
  absl::Status TestOf(const Bytes& bytes) const {
    WritePlain("test_batch.bin", bytes);
    return LoadCifarDataset(Cifar10(), folder_, DatasetSplit::kTest).status();
  }
};

TEST_F(CifarDatasetTest, LoadsTheFiveFilesOfTheTrainingSplitInTheirOrder) {
  for (uint8_t file = 1; file <= 5; ++file) {
    WritePlain(absl::StrCat("data_batch_", file, ".bin"),
               Joined({Record({file}, 10 * file), Record({0}, 0)}));
  }
  const auto train = LoadCifarDataset(Cifar10(), folder_, DatasetSplit::kTrain);
  ASSERT_THAT(train, IsOk());
  EXPECT_THAT(train->labels, ElementsAre(1, 0, 2, 0, 3, 0, 4, 0, 5, 0));
  EXPECT_EQ(train->form.channels, 3);
  EXPECT_EQ(train->form.rows, 32);
  EXPECT_EQ(train->form.columns, 32);
  EXPECT_EQ(train->form.classes, 10);
  EXPECT_THAT(train->normalization, SizeIs(3));
  ASSERT_THAT(train->images, SizeIs(10 * 3 * kPlane));
  EXPECT_EQ(train->images[8 * 3 * kPlane], 50);  // red of the ninth image
  EXPECT_EQ(train->images[8 * 3 * kPlane + kPlane - 1], 50);
  EXPECT_EQ(train->images[8 * 3 * kPlane + kPlane], 51);
  EXPECT_EQ(train->images[9 * 3 * kPlane - 1], 52);
  EXPECT_THAT(CountCifarSamples(Cifar10(), folder_, DatasetSplit::kTrain), IsOkAndHolds(10u));
}

TEST_F(CifarDatasetTest, TakesTheFineLabelOfCifar100) {
  WriteGzip("train.bin.gz", Joined({Record({19, 99}, 7), Record({0, 3}, 8)}));
  const auto train = LoadCifarDataset(Cifar100(), folder_, DatasetSplit::kTrain);
  ASSERT_THAT(train, IsOk());
  EXPECT_THAT(train->labels, ElementsAre(99, 3));
  EXPECT_EQ(train->form.classes, 100);
  EXPECT_EQ(train->images[0], 7);
  EXPECT_EQ(train->images[3 * kPlane], 8);
  EXPECT_THAT(CountCifarSamples(Cifar100(), folder_, DatasetSplit::kTrain), IsOkAndHolds(2u));
}

TEST_F(CifarDatasetTest, TakesSvhnInTheFormOfCifar10) {
  WritePlain("test.bin", Record({9}, 0));
  const auto test = LoadCifarDataset(Svhn(), folder_, DatasetSplit::kTest);
  ASSERT_THAT(test, IsOk());
  EXPECT_THAT(test->labels, ElementsAre(9));
}

TEST_F(CifarDatasetTest, NamesTheByteOfALabelThatIsTooLarge) {
  EXPECT_EQ(TestOf(Joined({Record({9}, 0), Record({10}, 0)})),
            absl::InvalidArgumentError(absl::StrCat(
                Path("test_batch.bin"), ": the label at byte 3073 is 10, expected 0 to 9")));
}

TEST_F(CifarDatasetTest, NamesTheByteAtWhichAFileIsCut) {
  Bytes bytes = Joined({Record({9}, 0), Record({1}, 0)});
  bytes.pop_back();
  EXPECT_EQ(TestOf(bytes),
            absl::DataLossError(absl::StrCat(
                Path("test_batch.bin"),
                ": the file ends at byte 6145, expected the 3073 bytes of a record from byte 3073; "
                "it is truncated: copy it again")));
  EXPECT_EQ(TestOf({}).code(), absl::StatusCode::kDataLoss);
}

TEST_F(CifarDatasetTest, NamesBothFormsOfAFileThatIsMissing) {
  EXPECT_EQ(LoadCifarDataset(Cifar10(), folder_, DatasetSplit::kTest).status(),
            absl::NotFoundError(absl::StrCat(
                "neither ", Path("test_batch.bin"), " nor ", Path("test_batch.bin.gz"),
                " exists; give the folder of the data set's binary form with --data-dir")));
}

}  // namespace
}  // namespace sluice
