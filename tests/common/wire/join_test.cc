#include "common/wire/join.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/tensor/layout.h"
#include "common/wire/messages.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

// 50 tensors of 80-byte names; 30 of them in the first group of the optimizer, 20 in the second.
JoinRequest SomeRequest() {
  JoinRequest request;
  request.worker = "a";
  request.process_nonce = ProcessNonce(7);
  std::vector<ConstantTensor> constants;
  for (uint64_t i = 0; i < 40; ++i) {
    constants.push_back({absl::StrCat("constant", i), {i, 3}, i % 2 == 0 ? "I64" : "BOOL"});
  }
  request.layout = *Layout::Create(ManyTensors(50).ranges(), {}, std::move(constants));
  request.optimizer.options = AdamOptions();
  request.optimizer.groups = {{{}, AdamOptions{0.5}}, {{}, AdamOptions{0.25}}};
  for (size_t i = 0; i < 50; ++i) {
    request.optimizer.groups[i < 30 ? 0 : 1].parameters.push_back(request.layout.ranges()[i].name);
  }
  return request;
}

absl::Status AddTo(JoinParts& parts, const v1::JoinRequest& part) {
  return parts.Add(part, part.ByteSizeLong());
}

class JoinPartsTest : public ::testing::Test {
 protected:
  // Adds a sound first part, which says that another follows.
  JoinPartsTest() {
    JoinRequest request = SomeRequest();
    request.optimizer.groups.clear();
    v1::JoinRequest first = ToProto(request);
    first.set_more(true);
    EXPECT_THAT(AddTo(parts_, first), IsOk());
  }

  JoinParts parts_;
};

// ---- Whole again ----

TEST(SplitJoinTest, MakesOnePartOfARequestThatFits) {
  const v1::JoinRequest whole = ToProto(SomeRequest());
  const auto parts = SplitJoin(whole);
  ASSERT_THAT(parts, SizeIs(1));
  EXPECT_EQ(parts[0].SerializeAsString(), whole.SerializeAsString());
}

TEST(SplitJoinTest, IsWholeAgainWhateverTheSizeOfItsParts) {
  const v1::JoinRequest whole = ToProto(SomeRequest());
  const std::string expected = whole.SerializeAsString();
  for (size_t size = 100; size < 20000; size += 97) {
    const std::vector<v1::JoinRequest> parts = SplitJoin(whole, size);
    JoinParts together;
    for (const v1::JoinRequest& part : parts) {
      EXPECT_FALSE(together.complete());
      if (&part != &parts[0]) {
        EXPECT_LE(part.ByteSizeLong(), std::max<size_t>(size, 130)) << size;
      }
      ASSERT_THAT(AddTo(together, part), IsOk()) << size;
    }
    EXPECT_TRUE(together.complete());
    EXPECT_EQ(together.parts(), parts.size());
    EXPECT_THAT(together.CheckComplete(), IsOk());
    // Groups in pieces are put together when the values are read.
    const auto request = FromProto(together.Take());
    ASSERT_THAT(request, IsOk()) << size;
    EXPECT_EQ(ToProto(*request).SerializeAsString(), expected) << size;
  }
}

// ---- What is refused ----

TEST_F(JoinPartsTest, RefusesAnotherFirstPart) {
  EXPECT_THAT(AddTo(parts_, ToProto(SomeRequest())),
              IsError(Reason::kBadArgument,
                      HasSubstr("part 2 of the request to join has the field role, expected "
                                "layout.ranges, layout.constants and optimizer.groups only")));
}

TEST_F(JoinPartsTest, RefusesOptionsAfterTheFirstPart) {
  v1::JoinRequest part;
  part.mutable_optimizer()->mutable_sgd();
  EXPECT_THAT(AddTo(parts_, part),
              IsError(Reason::kBadArgument, HasSubstr("part 2 of the request to join has the field "
                                                      "optimizer.sgd")));
}

TEST_F(JoinPartsTest, RefusesAnEmptyPart) {
  v1::JoinRequest part;
  part.set_more(true);
  EXPECT_THAT(AddTo(parts_, part), IsError(Reason::kBadArgument, HasSubstr("part 2 of the request "
                                                                           "to join is empty")));
}

TEST_F(JoinPartsTest, IsNotCompleteBeforeItsLastPart) {
  EXPECT_THAT(parts_.CheckComplete(),
              IsError(Reason::kBadArgument, HasSubstr("ends after 1 parts, expected another")));
  EXPECT_THAT(
      JoinParts().CheckComplete(),
      IsError(Reason::kBadArgument, HasSubstr("ends after 0 parts, expected at least one")));
}

TEST_F(JoinPartsTest, RefusesMoreTensorsThanALayoutMayHave) {
  v1::JoinRequest part;
  for (size_t i = 0; i < Layout::kMaxRanges - 50; ++i) part.mutable_layout()->add_ranges();
  part.set_more(true);
  EXPECT_THAT(AddTo(parts_, part), IsOk());
  v1::JoinRequest one_more;
  one_more.mutable_layout()->add_ranges();
  EXPECT_THAT(AddTo(parts_, one_more),
              IsError(Reason::kBadLayout, HasSubstr("has 1000001 ranges or more")));
}

TEST_F(JoinPartsTest, RefusesMoreGroupsAndGroupedNamesThanALayoutMayHave) {
  v1::JoinRequest names;
  v1::OptimizerGroup& group = *names.mutable_optimizer()->add_groups();
  for (size_t i = 0; i < Layout::kMaxRanges; ++i) group.add_parameters();
  names.set_more(true);
  EXPECT_THAT(AddTo(parts_, names), IsOk());
  v1::JoinRequest more;
  more.mutable_optimizer()->add_groups()->add_parameters();
  EXPECT_THAT(AddTo(parts_, more),
              IsError(Reason::kBadOptimizer, HasSubstr("2 groups of 1000001 parameters or more")));
  v1::JoinRequest groups;
  for (size_t i = 0; i < Layout::kMaxRanges; ++i) groups.mutable_optimizer()->add_groups();
  EXPECT_THAT(AddTo(parts_, groups),
              IsError(Reason::kBadOptimizer, HasSubstr("1000001 groups of ")));
}

// Else a few bytes would take hundreds of megabytes of memory until the request is complete.
TEST_F(JoinPartsTest, RefusesGroupsWithinAGroup) {
  v1::JoinRequest part;
  part.mutable_optimizer()->add_groups()->mutable_options()->add_groups();
  EXPECT_THAT(AddTo(parts_, part),
              IsError(Reason::kBadOptimizer, HasSubstr("has groups of its own, expected none")));
}

TEST_F(JoinPartsTest, RefusesMoreDimensionsThanATensorMayHave) {
  v1::JoinRequest part;
  v1::LayoutRange& range = *part.mutable_layout()->add_ranges();
  for (size_t i = 0; i < Layout::kMaxDimensions; ++i) range.add_shape(1);
  part.set_more(true);
  EXPECT_THAT(AddTo(parts_, part), IsOk());
  part.mutable_layout()->mutable_ranges(0)->add_shape(1);
  EXPECT_THAT(AddTo(parts_, part),
              IsError(Reason::kBadLayout, HasSubstr("has 9 dimensions, expected at most 8")));
}

TEST_F(JoinPartsTest, Takes64MiBAndNotAByteMore) {
  const size_t had = parts_.bytes();
  v1::JoinRequest part;
  part.mutable_layout()->add_ranges();
  part.set_more(true);
  EXPECT_THAT(parts_.Add(part, (size_t{64} << 20) - had), IsOk());
  EXPECT_THAT(parts_.Add(part, 1),
              IsError(Reason::kBadArgument, HasSubstr("part 3 of the request to join makes it "
                                                      "67108865 bytes long, expected at most "
                                                      "67108864")));
}

// ---- Groups in pieces ----

TEST(OptimizerPiecesTest, RefusesAGroupThatContinuesNoneOrHasOptions) {
  v1::OptimizerConfig config;
  config.mutable_sgd();
  config.add_groups()->set_continues(true);
  EXPECT_THAT(FromProto(config), IsError(Reason::kBadOptimizer,
                                         HasSubstr("continues another, but none comes before")));
  v1::OptimizerGroup& first = *config.mutable_groups(0);
  first.set_continues(false);
  first.add_parameters("w");
  first.mutable_options()->mutable_sgd();
  v1::OptimizerGroup& second = *config.add_groups();
  second.set_continues(true);
  second.mutable_options()->mutable_sgd();
  EXPECT_THAT(FromProto(config),
              IsError(Reason::kBadOptimizer, HasSubstr("but has options of its own")));
}

}  // namespace
}  // namespace sluice
