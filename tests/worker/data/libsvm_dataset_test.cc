#include "worker/data/libsvm_dataset.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"
#include "tests/worker/data/data_folder.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class LibsvmDatasetTest : public DataFolderTest {
 protected:
  absl::StatusOr<Dataset> Train(const std::string& text) const {
    WritePlain("train.libsvm", BytesOf(text));
    return LoadLibsvmDataset(folder_, DatasetSplit::kTrain);
  }

  absl::StatusOr<Dataset> Test(const std::string& train, const std::string& test) const {
    WritePlain("train.libsvm", BytesOf(train));
    WritePlain("test.libsvm", BytesOf(test));
    return LoadLibsvmDataset(folder_, DatasetSplit::kTest);
  }

  void ExpectRefused(const std::string& line, const std::string& why) const {
    EXPECT_EQ(
        Train("1 1:1\n" + line + "\n").status(),
        absl::InvalidArgumentError(absl::StrCat(Path("train.libsvm"), ": line 2: found ", why)));
  }
};

TEST_F(LibsvmDatasetTest, TakesTheNumbersThatAreThere) {
  const auto train = Train("+1 1:0.5 4:-2e1\n-1\n-1 2:3\n");
  ASSERT_THAT(train, IsOk());
  EXPECT_THAT(train->labels, ElementsAre(1, 0, 0));
  EXPECT_EQ(train->form.columns, 4);
  EXPECT_EQ(train->form.elements(), 4);
  EXPECT_EQ(train->form.classes, 2);
  EXPECT_THAT(train->features.begins, ElementsAre(0, 2, 2, 3));
  EXPECT_THAT(train->features.columns, ElementsAre(0, 3, 1));
  EXPECT_THAT(train->features.values, ElementsAre(0.5F, -20, 3));
  EXPECT_THAT(train->images, IsEmpty());
}

TEST_F(LibsvmDatasetTest, TheSortedLabelsAreTheClasses) {
  const auto train = Train("7 1:1\n-0.5 1:1\n3 1:1\n7 1:1");
  ASSERT_THAT(train, IsOk());
  EXPECT_THAT(train->labels, ElementsAre(2, 0, 1, 2));
}

TEST_F(LibsvmDatasetTest, SkipsCommentsEmptyLinesAndTheEndsOfLinesOfOtherSystems) {
  const auto train = Train("# a comment\n\n1 1:1 # 9:9\r\n0\t2:2 \r\n");
  ASSERT_THAT(train, IsOk());
  EXPECT_THAT(train->labels, ElementsAre(1, 0));
  EXPECT_THAT(train->features.columns, ElementsAre(0, 1));
}

TEST_F(LibsvmDatasetTest, TheTestSplitHasTheFormOfTheTrainingSplit) {
  const auto test = Test("-1 2:1\n1 3:1\n", "1 1:4 3:5 9:6\n");
  ASSERT_THAT(test, IsOk());
  EXPECT_EQ(test->form.columns, 3);
  EXPECT_THAT(test->labels, ElementsAre(1));
  EXPECT_THAT(test->features.begins, ElementsAre(0, 2));
  EXPECT_THAT(test->features.columns, ElementsAre(0, 2));
  EXPECT_THAT(CountLibsvmSamples(folder_, DatasetSplit::kTest), IsOkAndHolds(1u));
}

TEST_F(LibsvmDatasetTest, ReadsAFileThatIsLongerThanABlock) {
  std::string text;
  for (int i = 0; i < 20000; ++i) absl::StrAppend(&text, i % 2, " ", i + 1, ":1\n");
  WriteGzip("train.libsvm.gz", BytesOf(text));
  const auto train = LoadLibsvmDataset(folder_, DatasetSplit::kTrain);
  ASSERT_THAT(train, IsOk());
  EXPECT_EQ(train->size(), 20000);
  EXPECT_EQ(train->form.columns, 20000);
  for (int i = 0; i < 20000; ++i) ASSERT_EQ(train->features.columns[i], i);
}

TEST_F(LibsvmDatasetTest, NamesTheLineAndTheWordThatAreWrong) {
  const std::string pair =
      ", expected INDEX:VALUE with a whole number from 1 to 16777216 and a finite number";
  ExpectRefused("1 0:1", "\"0:1\"" + pair);
  ExpectRefused("1 16777217:1", "\"16777217:1\"" + pair);
  ExpectRefused("1 x:1", "\"x:1\"" + pair);
  ExpectRefused("1 1:", "\"1:\"" + pair);
  ExpectRefused("1 7", "\"7\"" + pair);
  ExpectRefused("1 1:nan", "\"1:nan\"" + pair);
  ExpectRefused("1 qid:3 1:1", "\"qid:3\"" + pair);
  ExpectRefused("1 2:1 2:1", "\"2:1\", expected an index above 2, since indices ascend");
  ExpectRefused("cat 1:1", "\"cat\", expected a label, which is a finite number");
}

TEST_F(LibsvmDatasetTest, RefusesFilesWithoutClasses) {
  EXPECT_EQ(Train("1.5 1:1\n").status(),
            absl::InvalidArgumentError(absl::StrCat(
                Path("train.libsvm"),
                ": expected 2 to 256 different labels, the classes; found 1 (Sluice trains no "
                "regression)")));
  std::string text;
  for (int i = 0; i < 257; ++i) absl::StrAppend(&text, i, "\n");
  EXPECT_THAT(Train(text),
              HasCode(absl::StatusCode::kInvalidArgument, ::testing::HasSubstr("found 257")));
  EXPECT_THAT(Train("\n# nothing\n"), HasCode(absl::StatusCode::kDataLoss, ::testing::_));
}

TEST_F(LibsvmDatasetTest, RefusesALineThatDoesNotEnd) {
  WriteGzip("train.libsvm.gz", Bytes((size_t{1} << 24) + 1, ' '));
  const absl::Status refused = absl::InvalidArgumentError(
      absl::StrCat(Path("train.libsvm.gz"), ": line 1: expected at most 16777216 bytes in a line"));
  EXPECT_EQ(LoadLibsvmDataset(folder_, DatasetSplit::kTrain).status(), refused);
  EXPECT_EQ(CountLibsvmSamples(folder_, DatasetSplit::kTrain).status(), refused);
}

TEST_F(LibsvmDatasetTest, RefusesATestLabelThatTrainingLacks) {
  EXPECT_EQ(Test("-1\n1\n", "\n-1\n0 1:1\n").status(),
            absl::InvalidArgumentError(
                absl::StrCat(Path("test.libsvm"),
                             ": line 3: the label is 0, expected one that the training file has")));
}

}  // namespace
}  // namespace sluice
