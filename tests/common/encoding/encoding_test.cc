#include "common/encoding/encoding.h"

#include <string>

#include "common/base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

Encoding Parsed(const std::string& text) {
  const auto encoding = ParseEncoding(text);
  EXPECT_THAT(encoding, IsOk());
  return encoding.ok() ? *encoding : Encoding();
}

TEST(EncodingTest, NothingIsDoneByDefault) {
  EXPECT_TRUE(Encoding().plain());
  EXPECT_TRUE(Parsed("none").plain());
  EXPECT_TRUE(Parsed("float32").plain());
  EXPECT_FALSE(Parsed("float32/zstd").plain());
  EXPECT_FALSE(Parsed("float32/planes").plain());
  EXPECT_FALSE(Parsed("float16").plain());
}

TEST(EncodingTest, ANameSaysAllOfIt) {
  for (const char* name : {"float32",
                           "float16",
                           "bfloat16",
                           "int8",
                           "int8:stochastic",
                           "sign",
                           "top-k:0.01",
                           "top-k:0.25:float16",
                           "random-k:0.5",
                           "low-rank:7",
                           "float32/planes/zstd:1",
                           "bfloat16/planes",
                           "int8/zstd:19",
                           "sign:momentum",
                           "float32/nonzero/pdict",
                           "float16/nonzero",
                           "top-k:0.01/pdict",
                           "top-k:0.001:float16/zstd:3",
                           "top-k:0.001:float16:momentum:warmup=400",
                           "top-k:0.0123456789",
                           "random-k:0.30000000000000004"}) {
    EXPECT_EQ(EncodingName(Parsed(name)), name);
  }
}

TEST(EncodingTest, WhatIsLeftOutHasItsDefault) {
  EXPECT_EQ(EncodingName(Parsed("top-k")), "top-k:0.01");
  EXPECT_EQ(EncodingName(Parsed("random-k:float16")), "random-k:0.01:float16");
  EXPECT_EQ(EncodingName(Parsed("low-rank")), "low-rank:4");
  EXPECT_EQ(EncodingName(Parsed("float32/planes/zstd")), "float32/planes/zstd:1");
}

TEST(EncodingTest, OnlyFloat32LosesNothing) {
  EXPECT_FALSE(Parsed("float32/planes/zstd").lossy());
  EXPECT_TRUE(Parsed("bfloat16").lossy());
  EXPECT_FALSE(Parsed("bfloat16").sparse());
  EXPECT_TRUE(Parsed("top-k").sparse());
  EXPECT_TRUE(Parsed("random-k").sparse());
}

TEST(EncodingTest, TheShareFallsInFourStagesWhileItWarmsUp) {
  const Encoding encoding = Parsed("top-k:0.001:warmup=400");
  EXPECT_DOUBLE_EQ(ShareAt(encoding, 0), 0.25);
  EXPECT_DOUBLE_EQ(ShareAt(encoding, 99), 0.25);
  EXPECT_NEAR(ShareAt(encoding, 100), 0.0629, 1e-4);
  EXPECT_NEAR(ShareAt(encoding, 200), 0.0158, 1e-4);
  EXPECT_NEAR(ShareAt(encoding, 399), 0.0040, 1e-4);
  EXPECT_EQ(ShareAt(encoding, 400), 0.001);
  EXPECT_EQ(ShareAt(Parsed("top-k:0.001"), 0), 0.001);
  EXPECT_EQ(ShareAt(Parsed("top-k:0.5:warmup=400"), 0), 0.5);
}

struct BadText {
  const char* text;
  const char* says;
};

TEST(EncodingTest, RefusesWhatItDoesNotKnow) {
  for (const BadText& bad : {
           BadText{"", "no transform \"\""},
           BadText{"Float16", "no transform \"Float16\" is known here; expected float32, float16"},
           BadText{"auto", "no transform \"auto\""},
           BadText{"float17:stochastic", "no transform \"float17\" with options"},
           BadText{"float16:stochastic", "float16 has no option \"stochastic\""},
           BadText{"top-k:0", "top-k has no option \"0\""},
           BadText{"top-k:1.5", "top-k has no option \"1.5\""},
           BadText{"top-k:nan", "top-k has no option \"nan\""},
           BadText{"top-k:warmup=0", "top-k has no option \"warmup=0\""},
           BadText{"top-k:warmup", "top-k has no option \"warmup\""},
           BadText{"random-k:momentum", "random-k has no option \"momentum\""},
           BadText{"low-rank:0", "low-rank has no option \"0\""},
           BadText{"low-rank:65", "low-rank has no option \"65\""},
           BadText{"int8/zstd:0", "level of 1 to 19"},
           BadText{"int8/zstd:20", "level of 1 to 19"},
           BadText{"int8/zstd1", "expected TRANSFORM"},
           BadText{"int8/lz4", "expected TRANSFORM"},
           BadText{"int8/pdict:1", "expected TRANSFORM"},
           BadText{"int8/pdict/nonzero", "expected TRANSFORM"},
           BadText{"int8/planes/nonzero", "expected TRANSFORM"},
           BadText{"int8/pdict/zstd", "expected TRANSFORM"},
           BadText{"int8:momentum", "int8 has no option \"momentum\""},
           BadText{"int8/zstd/planes", "expected TRANSFORM"},
       }) {
    const auto encoding = ParseEncoding(bad.text);
    EXPECT_EQ(ReasonOf(encoding.status()), Reason::kBadArgument) << bad.text;
    EXPECT_THAT(std::string(encoding.status().message()), HasSubstr(bad.says)) << bad.text;
  }
}

TEST(EncodingTest, AnyOtherNameIsThatOfAUsersOwnTransform) {
  const Encoding encoding = Parsed("negation/planes/zstd:2");
  EXPECT_EQ(encoding.transform, ValueTransform::kCustom);
  EXPECT_EQ(encoding.custom, "negation");
  EXPECT_TRUE(encoding.lossy());
  EXPECT_EQ(EncodingName(encoding), "negation/planes/zstd:2");
}

}  // namespace
}  // namespace sluice
