#include "common/wire/optimizer.h"

#include <limits>
#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/error.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// As a person writes them, from the contract alone; no field has another's value.
const std::string kAll[] = {
    "sgd { learning_rate: 0.5 momentum: 0.9 weight_decay: 0.25 nesterov: true }",
    "averaging { moving_rate: 0.5 local_steps: 8 }",
    "adam { learning_rate: 0.5 beta1: 0.9 beta2: 0.75 eps: 0.1 weight_decay: 0.2 amsgrad: true }",
    "adamw { learning_rate: 0.5 beta1: 0.9 beta2: 0.75 eps: 0.1 weight_decay: 0.2 amsgrad: true }",
    "adagrad { learning_rate: 0.5 lr_decay: 0.1 weight_decay: 0.2 initial_accumulator_value: 0.3 "
    "eps: 0.4 }",
    "rmsprop { learning_rate: 0.5 alpha: 0.9 eps: 0.1 weight_decay: 0.2 momentum: 0.3 "
    "centered: true }",
    "lamb { learning_rate: 0.5 beta1: 0.9 beta2: 0.75 eps: 0.1 weight_decay: 0.2 }",
};

v1::OptimizerConfig Text(const std::string& text) {
  v1::OptimizerConfig message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

MATCHER_P(EqualsProto, text, "") {
  *result_listener << "which is " << arg.ShortDebugString();
  return google::protobuf::util::MessageDifferencer::Equals(arg, Text(text));
}

absl::Status Read(const std::string& text) { return FromProto(Text(text)).status(); }

TEST(WireOptimizerTest, EveryKindSurvivesTheRoundTrip) {
  for (const std::string& text : kAll) {
    const auto config = FromProto(Text(text));
    ASSERT_THAT(config, IsOk());
    EXPECT_THAT(ToProto(*config), EqualsProto(text));
    EXPECT_THAT(text, HasSubstr(std::string(OptimizerName(config->options))));
  }
  EXPECT_EQ(std::size(kAll), std::variant_size_v<OptimizerOptions>);
}

TEST(WireOptimizerTest, ReadsEveryField) {
  const auto adamw = FromProto(Text(kAll[3]));
  ASSERT_THAT(adamw, IsOk());
  const auto& moments = std::get<AdamWOptions>(adamw->options);
  EXPECT_EQ(moments.learning_rate, 0.5);
  EXPECT_EQ(moments.beta1, 0.9);
  EXPECT_EQ(moments.beta2, 0.75);
  EXPECT_EQ(moments.eps, 0.1);
  EXPECT_EQ(moments.weight_decay, 0.2);
  EXPECT_TRUE(moments.amsgrad);
  const auto adagrad = FromProto(Text(kAll[4]));
  ASSERT_THAT(adagrad, IsOk());
  const auto& squares = std::get<AdagradOptions>(adagrad->options);
  EXPECT_EQ(squares.lr_decay, 0.1);
  EXPECT_EQ(squares.weight_decay, 0.2);
  EXPECT_EQ(squares.initial_accumulator_value, 0.3);
  EXPECT_EQ(squares.eps, 0.4);
  const auto rmsprop = FromProto(Text(kAll[5]));
  ASSERT_THAT(rmsprop, IsOk());
  const auto& mean = std::get<RmsPropOptions>(rmsprop->options);
  EXPECT_EQ(mean.alpha, 0.9);
  EXPECT_EQ(mean.eps, 0.1);
  EXPECT_EQ(mean.weight_decay, 0.2);
  EXPECT_EQ(mean.momentum, 0.3);
  EXPECT_TRUE(mean.centered);
}

TEST(WireOptimizerTest, RefusesNoOptimizer) {
  EXPECT_THAT(Read(""), IsError(Reason::kBadOptimizer,
                                HasSubstr("it knows sgd, adam, adamw, adagrad, rmsprop, lamb")));
}

// Unset is 0, which is no eps.
TEST(WireOptimizerTest, RefusesOptionsLeftOutThatHaveToBeThere) {
  for (const std::string kind : {"adam", "adamw", "adagrad", "rmsprop", "lamb"}) {
    EXPECT_THAT(Read(absl::StrCat(kind, " { learning_rate: 1 }")),
                IsError(Reason::kBadOptimizer, HasSubstr("eps is 0, expected a finite number")));
  }
}

// Of every number of every kind.
TEST(WireOptimizerTest, RefusesNotANumberAndInfinity) {
  for (const std::string& text : kAll) {
    v1::OptimizerConfig message = Text(text);
    const auto* const reflection = message.GetReflection();
    const auto* const kind = reflection->GetOneofFieldDescriptor(
        message, message.GetDescriptor()->FindOneofByName("optimizer"));
    for (int i = 0; i < kind->message_type()->field_count(); ++i) {
      const auto* const field = kind->message_type()->field(i);
      if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_DOUBLE) continue;
      for (const double value :
           {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
        v1::OptimizerConfig bad = message;
        google::protobuf::Message* const options = reflection->MutableMessage(&bad, kind);
        options->GetReflection()->SetDouble(options, field, value);
        EXPECT_THAT(FromProto(bad).status(),
                    IsError(Reason::kBadOptimizer, HasSubstr(absl::StrCat(field->name(), " is "))));
      }
    }
  }
}

// ---- Groups ----

constexpr char kGrouped[] = R"(
  lamb { learning_rate: 0.5 beta1: 0.9 beta2: 0.75 eps: 0.1 weight_decay: 0.2 }
  groups {
    parameters: "conv1.bias" parameters: "conv2.bias"
    options { lamb { learning_rate: 0.25 beta1: 0.9 beta2: 0.75 eps: 0.1 } }
  }
  groups {
    parameters: "fc.weight"
    options { lamb { learning_rate: 1 beta1: 0.9 beta2: 0.75 eps: 0.1 } }
  })";

TEST(WireOptimizerTest, GroupsSurviveTheRoundTrip) {
  const auto config = FromProto(Text(kGrouped));
  ASSERT_THAT(config, IsOk());
  ASSERT_EQ(config->groups.size(), 2u);
  EXPECT_THAT(config->groups[0].parameters, ElementsAre("conv1.bias", "conv2.bias"));
  EXPECT_EQ(LearningRateOf(config->options), 0.5);
  EXPECT_EQ(LearningRateOf(config->groups[0].options), 0.25);
  EXPECT_EQ(LearningRateOf(config->groups[1].options), 1);
  EXPECT_THAT(ToProto(*config), EqualsProto(kGrouped));
}

TEST(WireOptimizerTest, RefusesGroupsThatAreNone) {
  EXPECT_THAT(Read("sgd {} groups { parameters: \"a\" options { sgd { momentum: -1 } } }"),
              IsError(Reason::kBadOptimizer,
                      AllOf(HasSubstr("group of \"a\""), HasSubstr("SGD's momentum is -1"))));
  EXPECT_THAT(Read("sgd {} groups { options { sgd {} } }"),
              IsError(Reason::kBadOptimizer, HasSubstr("has no parameters")));
  EXPECT_THAT(Read("sgd {} groups { parameters: \"a\" }"),
              IsError(Reason::kBadOptimizer, HasSubstr("no optimizer that this server knows")));
  EXPECT_THAT(Read("sgd {} groups { parameters: \"a\" options { averaging {} } }"),
              IsError(Reason::kBadOptimizer, HasSubstr("is of averaging, expected sgd")));
  EXPECT_THAT(Read("sgd {} groups { parameters: \"a\" options { sgd {} groups {} } }"),
              IsError(Reason::kBadOptimizer, HasSubstr("groups of its own")));
}

}  // namespace
}  // namespace sluice
