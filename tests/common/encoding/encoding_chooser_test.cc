#include "common/encoding/encoding_chooser.h"

#include <vector>

#include "gtest/gtest.h"

namespace sluice {
namespace {

constexpr uint64_t kMegabyte = 1000000;

EncodingCost Cost(uint64_t megabytes, int encode_ms = 0, int decode_ms = 0) {
  return {megabytes * kMegabyte, absl::Milliseconds(encode_ms), absl::Milliseconds(decode_ms)};
}

// As it is; a little smaller at some cost; much smaller at more.
const std::vector<EncodingCost>& Costs() {
  static const auto* const costs =
      new std::vector<EncodingCost>{Cost(100), Cost(80, 100, 50), Cost(25, 400, 200)};
  return *costs;
}

// What is chosen of Costs() on a link of so many megabytes a second.
size_t ChosenAt(uint64_t megabytes) {
  EncodingChooser chooser(Pipeline::kThroughout, 100);
  chooser.NoteTransfer(megabytes * kMegabyte, absl::Seconds(1));
  return chooser.Choose(Costs());
}

TEST(TimeOnItsWayTest, APushTakesAsLongAsTheSlowestOfItsStagesAndTheOthersForOneChunk) {
  const EncodingCost cost = Cost(100, 400, 200);
  EXPECT_EQ(TimeOnItsWay(cost, 100e6, 1, Pipeline::kThroughout), absl::Milliseconds(1600));
  EXPECT_EQ(TimeOnItsWay(cost, 100e6, 10, Pipeline::kThroughout), absl::Milliseconds(1060));
  EXPECT_EQ(TimeOnItsWay(cost, 1000e6, 10, Pipeline::kThroughout), absl::Milliseconds(430));
}

TEST(TimeOnItsWayTest, APullIsEncodedBeforeItIsSent) {
  const EncodingCost cost = Cost(100, 400, 200);
  EXPECT_EQ(TimeOnItsWay(cost, 100e6, 10, Pipeline::kAfterEncoding), absl::Milliseconds(1420));
}

TEST(EncodingChooserTest, TheSlowerTheLinkTheSmallerTheChoice) {
  EXPECT_EQ(ChosenAt(10), 2u);
  EXPECT_EQ(ChosenAt(100), 2u);
  EXPECT_EQ(ChosenAt(250), 1u);
  EXPECT_EQ(ChosenAt(2000), 0u);
}

TEST(EncodingChooserTest, IsPlainUntilSomethingWasMeasured) {
  EncodingChooser chooser(Pipeline::kThroughout, 1);
  EXPECT_EQ(chooser.Choose(Costs()), 0u);
  EXPECT_EQ(chooser.link(), 0);
  chooser.NoteTransfer(1000, absl::ZeroDuration());
  EXPECT_EQ(chooser.Choose(Costs()), 0u);
}

TEST(EncodingChooserTest, TheLinkIsAllBytesOverAllTime) {
  EncodingChooser chooser(Pipeline::kThroughout, 1);
  chooser.NoteTransfer(10 * kMegabyte, absl::Seconds(1));
  chooser.NoteTransfer(20 * kMegabyte, absl::Seconds(2));
  chooser.Choose(Costs());
  EXPECT_EQ(chooser.link(), 10e6);
}

TEST(EncodingChooserTest, GoesByWhatWasMeasuredSinceTheLastChoice) {
  EncodingChooser chooser(Pipeline::kThroughout, 100);
  chooser.NoteTransfer(10 * kMegabyte, absl::Seconds(1));
  EXPECT_EQ(chooser.Choose(Costs()), 2u);
  EXPECT_EQ(chooser.Choose(Costs()), 2u);  // nothing new
  chooser.NoteTransfer(2000 * kMegabyte, absl::Seconds(1));
  EXPECT_EQ(chooser.Choose(Costs()), 0u);
}

TEST(EncodingChooserTest, ChangesOnlyForWhatSavesATwentieth) {
  EncodingChooser chooser(Pipeline::kThroughout, 1);
  chooser.NoteTransfer(kMegabyte, absl::Seconds(1));
  EXPECT_EQ(chooser.Choose({Cost(1000), Cost(951)}), 0u);
  EXPECT_EQ(chooser.Choose({Cost(1000), Cost(949)}), 1u);
  EXPECT_EQ(chooser.Choose({Cost(1000), Cost(1049)}), 1u);
  EXPECT_EQ(chooser.Choose({Cost(1000), Cost(1053)}), 0u);
}

TEST(EncodingChooserTest, OfEqualOnesItTakesTheFirst) {
  EncodingChooser chooser(Pipeline::kThroughout, 1);
  chooser.NoteTransfer(kMegabyte, absl::Seconds(1));
  EXPECT_EQ(chooser.Choose({Cost(1000), Cost(100), Cost(100)}), 1u);
}

}  // namespace
}  // namespace sluice
