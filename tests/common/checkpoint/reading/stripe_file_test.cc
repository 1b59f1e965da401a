#include "common/checkpoint/reading/stripe_file.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/file_names.h"
#include "common/encoding/checksum.h"
#include "common/tensor/stripes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/durable/checkpoint/stripe_writer.h"
#include "tests/testing/durable/faulty_files.h"
#include "tests/testing/durable/striped_checkpoints.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

constexpr char kStripePath[] = "d/stripe";

// An element of the vectors that the tests save.
float ElementOf(size_t vector, uint64_t offset) {
  return static_cast<float>(1000 * vector) + static_cast<float>(offset) / 4;
}

FloatBuffer StripeValues(const Stripes& stripes, uint32_t stripe, size_t vector) {
  FloatBuffer values(stripes.SizeOf(stripe));
  for (uint64_t i = 0; i < values.size(); ++i) {
    values.span()[i] = ElementOf(vector, stripes.InVector(stripe, i));
  }
  return values;
}

class StripeFileTest : public ::testing::Test {
 protected:
  ExpectedStripe Write(const Layout& layout, uint32_t stripe, uint32_t count,
                       std::vector<std::string> slots = {"m", "v"}) {
    const Stripes stripes(layout.size(), count);
    StripeCheckpoint checkpoint;
    const auto parameters = std::make_shared<Snapshot>();
    parameters->values = StripeValues(stripes, stripe, 0);
    checkpoint.parameters = parameters;
    for (const std::string& slot : slots) {
      checkpoint.slots.push_back(
          {slot, StripeValues(stripes, stripe, checkpoint.slots.size() + 1)});
    }
    checkpoint.optimizer_steps = 7;
    StripeName name{"job", Incarnation(2), Step(9), stripe, count};
    auto file = files_.Create(kStripePath);
    EXPECT_THAT(file, IsOk());
    const auto sum = WriteStripe(name, layout, checkpoint, **file);
    EXPECT_THAT(sum, IsOk());
    return {std::move(name), layout, std::move(slots), 7, *sum};
  }

  absl::Status Read(const ExpectedStripe& expected, const StripePieces& pieces) {
    return ReadStripe(**files_.Open(kStripePath), expected, pieces);
  }
  absl::Status Read(const ExpectedStripe& expected) {
    return Read(expected, [](size_t, uint64_t, absl::Span<const float>) {});
  }
  std::string& bytes() { return files_.BytesOf(kStripePath); }

  FaultyFiles files_;
  const std::shared_ptr<const Layout> layout_ = LayoutOfSizes({100, 1, 45});
};

TEST_F(StripeFileTest, NamesItsFile) {
  EXPECT_THAT((StripeName{"job", Incarnation(2), Step(9), 1, 3}.FileName()),
              ::testing::MatchesRegex("stripe-0*2-0*9-1-of-3\\.safetensors"));
}

TEST_F(StripeFileTest, ComesBackWithAnyNumberOfStripesAndSlots) {
  // The last sizes give stripes without elements, and stripes of several pieces.
  for (const auto& layout :
       {layout_, LayoutOfSizes({1}), LayoutOfSizes({300'000, 700'001}), LayoutOfSizes({64, 64})}) {
    for (uint32_t count = 1; count <= 5; ++count) {
      const Stripes stripes(layout->size(), count);
      for (uint32_t stripe = 0; stripe < count; ++stripe) {
        for (const std::vector<std::string>& slots :
             {std::vector<std::string>{}, {"momentum"}, {"m", "v"}}) {
          const auto expected = Write(*layout, stripe, count, slots);
          uint64_t wrong = 0;
          std::vector<uint64_t> read(slots.size() + 1);
          ASSERT_THAT(Read(expected,
                           [&](size_t vector, uint64_t offset, absl::Span<const float> values) {
                             EXPECT_EQ(offset, read[vector]);
                             for (const float value : values) {
                               const uint64_t at = stripes.InVector(stripe, read[vector]++);
                               wrong += value != ElementOf(vector, at);
                             }
                           }),
                      IsOk());
          EXPECT_EQ(wrong, 0u);
          EXPECT_EQ(read, std::vector<uint64_t>(slots.size() + 1, stripes.SizeOf(stripe)));
        }
      }
    }
  }
}

TEST_F(StripeFileTest, ReturnsTheChecksumOfTheFile) {
  const auto expected = Write(*layout_, 1, 3);
  EXPECT_EQ(expected.checksum, Checksum(bytes()));
}

TEST_F(StripeFileTest, NoticesEveryFlippedByte) {
  const auto expected = Write(*layout_, 1, 3);
  for (size_t i = 0; i < bytes().size(); ++i) {
    bytes()[i] ^= 0x10;
    EXPECT_THAT(Read(expected), HasCode(absl::StatusCode::kDataLoss, HasSubstr("")))
        << "byte " << i;
    bytes()[i] ^= 0x10;
  }
  EXPECT_THAT(Read(expected), IsOk());
}

TEST_F(StripeFileTest, NoticesEveryCut) {
  const auto expected = Write(*layout_, 1, 3);
  const std::string whole = bytes();
  for (size_t size = 0; size < whole.size(); ++size) {
    bytes() = whole.substr(0, size);
    EXPECT_THAT(Read(expected), HasCode(absl::StatusCode::kDataLoss, HasSubstr("")))
        << "size " << size;
  }
}

TEST_F(StripeFileTest, SaysWhatAForeignFileIsAndWhatWasExpected) {
  const auto expected = Write(*layout_, 1, 3);
  const auto refusal = [&](const StripeName& name) {
    return Read({name, *layout_, expected.slots, 7, expected.checksum});
  };
  const auto says = [](const std::string& key, const std::string& is, const std::string& expects) {
    return HasCode(absl::StatusCode::kDataLoss,
                   HasSubstr(absl::StrCat("\"sluice:", key, "\" is \"", is,
                                          "\", and the checkpoint expects \"", expects, "\"")));
  };
  const Incarnation two(2);
  EXPECT_THAT(refusal({"other", two, Step(9), 1, 3}), says("job", "job", "other"));
  EXPECT_THAT(refusal({"job", Incarnation(3), Step(9), 1, 3}), says("incarnation", "2", "3"));
  EXPECT_THAT(refusal({"job", two, Step(8), 1, 3}), says("step", "9", "8"));
  EXPECT_THAT(refusal({"job", two, Step(9), 2, 3}), says("stripe", "1", "2"));
  EXPECT_THAT(refusal({"job", two, Step(9), 1, 4}), says("stripes", "3", "4"));
  EXPECT_THAT(Read({expected.name, *layout_, expected.slots, 6, expected.checksum}),
              says("optimizer_steps", "7", "6"));
}

TEST_F(StripeFileTest, RefusesTensorsOfAnotherLayoutOrOptimizer) {
  const auto expected = Write(*layout_, 1, 3);
  const auto other = LayoutOfSizes({100, 1, 400});
  const auto tensors = HasCode(absl::StatusCode::kDataLoss, HasSubstr("its tensors are not"));
  EXPECT_THAT(Read({expected.name, *other, expected.slots, 7, expected.checksum}), tensors);
  EXPECT_THAT(Read({expected.name, *layout_, {"m"}, 7, expected.checksum}), tensors);
  EXPECT_THAT(Read({expected.name, *layout_, {"m", "w"}, 7, expected.checksum}), tensors);
}

TEST_F(StripeFileTest, RefusesAnIntactFileThatIsNotTheOneSaved) {
  const auto expected = Write(*layout_, 1, 3);
  EXPECT_THAT(
      Read({expected.name, *layout_, expected.slots, 7, expected.checksum + 1}),
      HasCode(absl::StatusCode::kDataLoss, HasSubstr("it is another file than the one saved")));
}

}  // namespace
}  // namespace sluice
