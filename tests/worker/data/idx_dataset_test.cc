#include "worker/data/idx_dataset.h"

#include <algorithm>
#include <iterator>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/data/data_folder.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class IdxDatasetTest : public DataFolderTest {
 protected:
  absl::StatusOr<Dataset> LoadTrain() const {
    return LoadIdxDataset(folder_, DatasetSplit::kTrain);
  }
};

// `count` images, every pixel of the i-th being i.
Bytes Images(uint8_t count, uint8_t rows = 28, uint8_t columns = 28) {
  Bytes bytes = {0, 0, 8, 3, 0, 0, 0, count, 0, 0, 0, rows, 0, 0, 0, columns};
  for (uint8_t i = 0; i < count; ++i) bytes.insert(bytes.end(), size_t{rows} * columns, i);
  return bytes;
}

Bytes Labels(const Bytes& labels) {
  Bytes bytes = {0, 0, 8, 1, 0, 0, 0, static_cast<uint8_t>(labels.size())};
  std::copy(labels.begin(), labels.end(), std::back_inserter(bytes));
  return bytes;
}

TEST_F(IdxDatasetTest, LoadsImagesWithTheirLabels) {
  WritePlain("train-images-idx3-ubyte", Images(3));
  WritePlain("train-labels-idx1-ubyte", Labels({9, 0, 4}));
  const absl::StatusOr<Dataset> train = LoadTrain();
  ASSERT_TRUE(train.ok()) << train.status();
  EXPECT_EQ(train->size(), 3);
  EXPECT_EQ(train->form.rows, 28);
  EXPECT_EQ(train->form.columns, 28);
  EXPECT_THAT(train->labels, ElementsAre(9, 0, 4));
  ASSERT_EQ(train->images.size(), 3u * 784);
  EXPECT_EQ(train->images[783], 0);
  EXPECT_EQ(train->images[784], 1);
  EXPECT_EQ(train->images.back(), 2);
}

TEST_F(IdxDatasetTest, CountsTheSamplesByTheirLabelsAlone) {
  WriteGzip("train-labels-idx1-ubyte.gz", Labels({9, 0, 4}));
  const absl::StatusOr<uint64_t> samples = CountIdxSamples(folder_, DatasetSplit::kTrain);
  ASSERT_TRUE(samples.ok()) << samples.status();
  EXPECT_EQ(*samples, 3u);
  EXPECT_TRUE(absl::IsNotFound(CountIdxSamples(folder_, DatasetSplit::kTest).status()));
}

TEST_F(IdxDatasetTest, KeepsTheSplitsApart) {
  WritePlain("train-images-idx3-ubyte", Images(1));
  WritePlain("train-labels-idx1-ubyte", Labels({1}));
  WritePlain("t10k-images-idx3-ubyte", Images(2));
  WritePlain("t10k-labels-idx1-ubyte", Labels({2, 3}));
  const absl::StatusOr<Dataset> test = LoadIdxDataset(folder_, DatasetSplit::kTest);
  ASSERT_TRUE(test.ok()) << test.status();
  EXPECT_THAT(test->labels, ElementsAre(2, 3));
  EXPECT_THAT(LoadTrain()->labels, ElementsAre(1));
}

TEST_F(IdxDatasetTest, TakesEachFilePlainOrGzipped) {
  WriteGzip("train-images-idx3-ubyte.gz", Images(2));
  WritePlain("train-labels-idx1-ubyte", Labels({5, 6}));
  const absl::StatusOr<Dataset> train = LoadTrain();
  ASSERT_TRUE(train.ok()) << train.status();
  EXPECT_THAT(train->labels, ElementsAre(5, 6));
  EXPECT_EQ(train->images.back(), 1);
}

TEST_F(IdxDatasetTest, PrefersThePlainForm) {
  WritePlain("train-images-idx3-ubyte", Images(1));
  WritePlain("train-labels-idx1-ubyte", Labels({7}));
  WriteGzip("train-labels-idx1-ubyte.gz", Labels({8}));
  EXPECT_THAT(LoadTrain()->labels, ElementsAre(7));
}

TEST_F(IdxDatasetTest, RefusesABrokenPlainFormBesideAGoodGzippedOne) {
  WritePlain("train-images-idx3-ubyte", {0, 0, 8});
  WriteGzip("train-images-idx3-ubyte.gz", Images(1));
  WritePlain("train-labels-idx1-ubyte", Labels({7}));
  EXPECT_EQ(LoadTrain().status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(IdxDatasetTest, NamesBothFormsOfAMissingFileAndWhatToDo) {
  WritePlain("train-images-idx3-ubyte", Images(1));
  const std::string path = Path("train-labels-idx1-ubyte");
  EXPECT_EQ(LoadTrain().status(),
            absl::NotFoundError(absl::StrCat(
                "neither ", path, " nor ", path,
                ".gz exists; Debian's package dataset-fashion-mnist installs Fashion-MNIST; the "
                "folder of MNIST, which Debian does not package, is given with --dataset=mnist "
                "--data-dir=FOLDER")));
}

TEST_F(IdxDatasetTest, NamesBothCountsWhenTheyDiffer) {
  WriteGzip("train-images-idx3-ubyte.gz", Images(3));
  WritePlain("train-labels-idx1-ubyte", Labels({1, 2}));
  EXPECT_EQ(LoadTrain().status(),
            absl::InvalidArgumentError(absl::StrCat(
                Path("train-images-idx3-ubyte.gz"), " holds 3 images and ",
                Path("train-labels-idx1-ubyte"),
                " 2 labels (both at byte 4), expected as many; take both files from one dataset")));
}

TEST_F(IdxDatasetTest, NamesTheFirstLabelAboveNine) {
  WritePlain("train-images-idx3-ubyte", Images(4));
  WritePlain("train-labels-idx1-ubyte", Labels({9, 0, 10, 255}));
  EXPECT_EQ(LoadTrain().status(),
            absl::InvalidArgumentError(Path("train-labels-idx1-ubyte") +
                                       ": the label at byte 10 is 10, expected 0 to 9"));
}

TEST_F(IdxDatasetTest, RefusesImagesOfAnotherSize) {
  WritePlain("train-labels-idx1-ubyte", Labels({1}));
  for (const auto& [rows, columns] : {std::pair{28, 32}, std::pair{32, 28}}) {
    WritePlain("train-images-idx3-ubyte", Images(1, rows, columns));
    EXPECT_EQ(LoadTrain().status(),
              absl::InvalidArgumentError(absl::StrCat(Path("train-images-idx3-ubyte"),
                                                      ": the images' size at byte 8 is ", rows, "x",
                                                      columns, ", expected 28x28")));
  }
}

TEST_F(IdxDatasetTest, RefusesSwappedFiles) {
  WritePlain("train-images-idx3-ubyte", Labels({1}));
  WritePlain("train-labels-idx1-ubyte", Images(1));
  const absl::Status status = LoadTrain().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("byte 3 is 0x01, expected 0x03"));
}

// The files of Debian's package dataset-fashion-mnist: as many images of each of the ten labels.
TEST(FashionMnistTest, LoadsAsDebianPackagesIt) {
  const std::string folder = "/usr/share/datasets/fashion-mnist";
  const absl::StatusOr<Dataset> train = LoadIdxDataset(folder, DatasetSplit::kTrain);
  const absl::StatusOr<Dataset> test = LoadIdxDataset(folder, DatasetSplit::kTest);
  ASSERT_TRUE(train.ok()) << train.status();
  ASSERT_TRUE(test.ok()) << test.status();
  EXPECT_EQ(train->size(), 60000);
  EXPECT_EQ(test->size(), 10000);
  EXPECT_EQ(train->images.size(), 60000u * 784);
  EXPECT_EQ(test->images.size(), 10000u * 784);
  for (uint8_t label = 0; label <= 9; ++label) {
    EXPECT_EQ(std::count(train->labels.begin(), train->labels.end(), label), 6000);
    EXPECT_EQ(std::count(test->labels.begin(), test->labels.end(), label), 1000);
  }
}

}  // namespace
}  // namespace sluice
