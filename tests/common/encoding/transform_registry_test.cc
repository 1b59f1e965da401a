#include "common/encoding/transform_registry.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/encoding/codec.h"
#include "common/encoding/encoding_plan.h"
#include "common/encoding/transforms/builtin_transforms.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

// The negation of every value.
class Negation : public Transform {
 public:
  size_t width() const override { return 4; }
  void Encode(absl::Span<const float> values, const Encoding&, const ChunkContext&, ChunkEncoding*,
              std::string* bytes) const override {
    for (float value : values) {
      value = -value;
      bytes->append(reinterpret_cast<const char*>(&value), sizeof(value));
    }
  }
  absl::StatusOr<uint64_t> MostBytes(const ChunkEncoding& how) const override {
    return how.count * sizeof(float);
  }
  absl::Status Decode(absl::string_view bytes, const ChunkEncoding&,
                      absl::Span<float> values) const override {
    if (bytes.size() != values.size() * sizeof(float)) return absl::InvalidArgumentError("size");
    std::copy_n(bytes.data(), bytes.size(), reinterpret_cast<char*>(values.data()));
    for (float& value : values) value = -value;
    return absl::OkStatus();
  }
};

// No byte layout knows values of so many bytes.
class Wide final : public Negation {
 public:
  size_t width() const override { return 8; }
};

TransformRegistry With(absl::string_view name) {
  TransformRegistry transforms = BuiltinTransforms();
  transforms.Add(name, std::make_unique<Negation>());
  return transforms;
}

EncodedChunk Encode(absl::string_view encoding, const std::vector<float>& values,
                    const TransformRegistry& transforms) {
  return EncodeValues(0, values, *ParseEncoding(encoding), {}, transforms);
}

TEST(TransformRegistryTest, AUsersOwnTransformEncodesAndDecodes) {
  const TransformRegistry transforms = With("negation");
  const std::vector<float> values = {1, -2, 3};
  const EncodedChunk chunk = Encode("negation/planes/zstd:2", values, transforms);
  EXPECT_EQ(chunk.how.custom, "negation");
  std::vector<float> decoded(values.size());
  ASSERT_THAT(DecodeValues(chunk, absl::MakeSpan(decoded), transforms), IsOk());
  EXPECT_EQ(decoded, values);
}

TEST(TransformRegistryTest, TwoRegistriesOfAProcessKnowDifferentTransforms) {
  const TransformRegistry first = With("first");
  const TransformRegistry second = With("second");
  const EncodedChunk chunk = Encode("first", {1, 2}, first);
  std::vector<float> decoded(2);
  EXPECT_THAT(DecodeValues(chunk, absl::MakeSpan(decoded), first), IsOk());
  EXPECT_THAT(DecodeValues(chunk, absl::MakeSpan(decoded), second),
              IsError(Reason::kBadArgument, HasSubstr("no transform \"first\" is known here; "
                                                      "expected float32")));
  EXPECT_THAT(DecodeValues(chunk, absl::MakeSpan(decoded), second),
              IsError(Reason::kBadArgument, HasSubstr("or registered: second")));
  EXPECT_THAT(first.Find(ValueTransform::kCustom, "second"),
              IsError(Reason::kBadArgument, HasSubstr("no transform \"second\"")));
}

TEST(TransformRegistryTest, ACopyKnowsWhatItWasCopiedFrom) {
  TransformRegistry copy;
  {
    const TransformRegistry transforms = With("negation");
    copy = transforms;
  }
  copy.Add("more", std::make_unique<Negation>());
  EXPECT_THAT(copy.Find(ValueTransform::kCustom, "negation"), IsOk());
  EXPECT_THAT(copy.Find(ValueTransform::kCustom, "more"), IsOk());
}

TEST(TransformRegistryTest, KnowsOnlyWhatWasAdded) {
  EXPECT_THAT(TransformRegistry().Find(ValueTransform::kInt8, ""),
              IsError(Reason::kBadArgument, HasSubstr("transform 3 is not known here")));
  EXPECT_THAT(BuiltinTransforms().Find(ValueTransform::kCustom, "int8"),
              IsError(Reason::kBadArgument, HasSubstr("no transform \"int8\"")));
  EXPECT_THAT(BuiltinTransforms().Find(static_cast<ValueTransform>(-1), ""),
              IsError(Reason::kBadArgument, HasSubstr("transform -1")));
}

TEST(TransformRegistryTest, EveryPartOfAChoiceMustBeKnown) {
  const TransformRegistry transforms = With("mine");
  for (const char* known : {"mine", "auto:mine,int8", "int8,fc.*=mine", "auto"}) {
    EXPECT_THAT(CheckKnown(*ParseEncodingChoice(known), transforms), IsOk());
  }
  for (const char* unknown : {"int9", "auto:mine,int9", "mine,fc.*=int9"}) {
    EXPECT_THAT(CheckKnown(*ParseEncodingChoice(unknown), transforms),
                IsError(Reason::kBadArgument, HasSubstr("encoding \"int9\": no transform \"int9\" "
                                                        "is known here; expected float32")))
        << unknown;
  }
}

TEST(TransformRegistryTest, AnUnknownNameIsToldTheNearest) {
  const TransformRegistry transforms = With("mine");
  for (const auto& [name, end] : std::map<std::string, std::string>{
           {"int9", "; did you mean int8?"}, {"mime", "; did you mean mine?"}}) {
    EXPECT_THAT(CheckKnown(*ParseEncodingChoice(name), transforms),
                IsError(Reason::kBadArgument, EndsWith(end)));
  }
}

TEST(TransformRegistryDeathTest, ATransformsNameIsTakenOnce) {
  TransformRegistry transforms = With("once");
  EXPECT_DEATH(transforms.Add("int8", std::make_unique<Negation>()), "int8 already");
  EXPECT_DEATH(transforms.Add("none", std::make_unique<Negation>()), "none already");
  EXPECT_DEATH(transforms.Add("auto", std::make_unique<Negation>()), "cannot be the name");
  EXPECT_DEATH(transforms.Add("Bad name", std::make_unique<Negation>()), "cannot be the name");
  EXPECT_DEATH(transforms.Add("wide", std::make_unique<Wide>()), "8 bytes, expected 1, 2 or 4");
  EXPECT_DEATH(transforms.Add("once", std::make_unique<Negation>()), "once was added already");
}

}  // namespace
}  // namespace sluice
