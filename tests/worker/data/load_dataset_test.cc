#include "worker/data/load_dataset.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"
#include "tests/worker/data/data_folder.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LoadDatasetTest : public DataFolderTest {};

TEST_F(LoadDatasetTest, FindsFashionMnistWhereDebianPutsIt) {
  EXPECT_THAT(CountSamples({}, DatasetSplit::kTrain), IsOkAndHolds(60000u));
  const auto test = LoadDataset({}, DatasetSplit::kTest);
  ASSERT_THAT(test, IsOk());
  EXPECT_EQ(test->size(), 10000);
}

TEST_F(LoadDatasetTest, ReadsEachDataSetInItsOwnForm) {
  WritePlain("test_batch.bin", Bytes(3073));
  WritePlain("test.bin", Bytes(3073));
  WritePlain("train.libsvm", BytesOf("0 1:1\n1 1:1\n"));
  WritePlain("test.libsvm", BytesOf("0 1:1\n"));
  for (const char* const name : {"cifar10", "svhn", "libsvm"}) {
    EXPECT_THAT(CountSamples({name, folder_}, DatasetSplit::kTest), IsOkAndHolds(1u)) << name;
  }
  WritePlain("test.bin", Bytes(3074));
  EXPECT_THAT(CountSamples({"cifar100", folder_}, DatasetSplit::kTest), IsOkAndHolds(1u));
}

TEST_F(LoadDatasetTest, NormalizesMnistByItsOwnPixels) {
  WritePlain("t10k-labels-idx1-ubyte", {0, 0, 8, 1, 0, 0, 0, 1, 3});
  Bytes images = {0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 28, 0, 0, 0, 28};
  images.resize(images.size() + 28 * 28);
  WritePlain("t10k-images-idx3-ubyte", images);
  const auto mnist = LoadDataset({"mnist", folder_}, DatasetSplit::kTest);
  ASSERT_THAT(mnist, IsOk());
  EXPECT_EQ(mnist->normalization[0].mean, 0.1307F);
  const auto fashion = LoadDataset({"fashion-mnist", folder_}, DatasetSplit::kTest);
  EXPECT_EQ(fashion->normalization[0].mean, 0.2860F);
}

TEST_F(LoadDatasetTest, SaysWhatToDoWithoutAFolder) {
  EXPECT_EQ(
      LoadDataset({"cifar10", ""}, DatasetSplit::kTest).status(),
      absl::InvalidArgumentError("--dataset=cifar10 needs --data-dir, the folder of its files"));
}

TEST_F(LoadDatasetTest, ListsTheNamesThatItKnows) {
  EXPECT_THAT(DatasetNames(),
              ElementsAre("fashion-mnist", "mnist", "cifar10", "cifar100", "svhn", "libsvm"));
  EXPECT_THAT(LoadDataset({"imagenet", "x"}, DatasetSplit::kTest),
              HasCode(absl::StatusCode::kInvalidArgument,
                      HasSubstr("\"imagenet\" is unknown; expected one of fashion-mnist, mnist")));
}

}  // namespace
}  // namespace sluice
