#include "common/wire/optimizer.h"

#include <limits>
#include <string>
#include <vector>

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
using ::testing::UnorderedElementsAreArray;

// As a person writes them, from the contract alone; no field has another's value.
constexpr char kAdamW[] =
    "adamw { learning_rate: 0.5 beta1: 0.9 beta2: 0.75 eps: 0.1 weight_decay: 0.2 amsgrad: true }";
constexpr char kAdagrad[] =
    "adagrad { learning_rate: 0.5 lr_decay: 0.1 weight_decay: 0.2 initial_accumulator_value: 0.3 "
    "eps: 0.4 }";
constexpr char kRmsProp[] =
    "rmsprop { learning_rate: 0.5 alpha: 0.9 eps: 0.1 weight_decay: 0.2 momentum: 0.3 "
    "centered: true }";
constexpr char kAveraging[] =
    "averaging { moving_rate: 0.5 local_steps: 8 outer_momentum: 0.25 outer_nesterov: true }";

// Every optimizer of the table, with a value of its own in each field.
std::vector<OptimizerOptions> AllFilled() {
  std::vector<OptimizerOptions> all = AllOptimizers();
  for (OptimizerOptions& options : all) {
    double next = 0;
    for (const OptionRef& option : OptionsOf(options)) {
      next += 1.0 / 16;
      const bool whole = !std::holds_alternative<double*>(option.field);
      option.set(whole ? 1 : next);
    }
    if (auto* const sgd = std::get_if<SgdOptions>(&options)) sgd->dampening = 0;  // for Nesterov
  }
  return all;
}

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
  for (const OptimizerOptions& options : AllFilled()) {
    const auto config = FromProto(ToProto({options}));
    ASSERT_THAT(config, IsOk());
    EXPECT_THAT(CheckSameOptimizer(options, config->options), IsOk());
  }
  for (const char* text : {kAdamW, kAdagrad, kRmsProp, kAveraging}) {
    const auto config = FromProto(Text(text));
    ASSERT_THAT(config, IsOk());
    EXPECT_THAT(ToProto(*config), EqualsProto(text));
  }
}

// The table and the contract name the same optimizers, with the same options.
TEST(WireOptimizerTest, EveryOptionIsAFieldAndEveryFieldAnOption) {
  const auto* const kinds = v1::OptimizerConfig::descriptor()->FindOneofByName("optimizer");
  std::vector<std::string> names;
  for (OptimizerOptions options : AllOptimizers()) {
    names.emplace_back(OptimizerName(options));
    const auto* const kind = kinds->containing_type()->FindFieldByName(names.back());
    ASSERT_NE(kind, nullptr) << names.back();
    std::vector<std::string> fields;
    for (int i = 0; i < kind->message_type()->field_count(); ++i) {
      fields.push_back(kind->message_type()->field(i)->name());
    }
    std::vector<std::string> described;
    for (const OptionRef& option : OptionsOf(options)) {
      described.emplace_back(option.info.name);
      const auto* const field = kind->message_type()->FindFieldByName(option.info.name);
      ASSERT_NE(field, nullptr) << names.back() << "'s " << option.info.name;
      const google::protobuf::FieldDescriptor::CppType types[] = {
          google::protobuf::FieldDescriptor::CPPTYPE_DOUBLE,
          google::protobuf::FieldDescriptor::CPPTYPE_BOOL,
          google::protobuf::FieldDescriptor::CPPTYPE_UINT32};
      EXPECT_EQ(field->cpp_type(), types[option.field.index()]) << option.info.name;
    }
    EXPECT_THAT(fields, UnorderedElementsAreArray(described)) << names.back();
  }
  std::vector<std::string> known;
  for (int i = 0; i < kinds->field_count(); ++i) known.push_back(kinds->field(i)->name());
  EXPECT_THAT(known, UnorderedElementsAreArray(names));
}

TEST(WireOptimizerTest, ReadsEveryField) {
  const auto adamw = FromProto(Text(kAdamW));
  ASSERT_THAT(adamw, IsOk());
  const auto& moments = std::get<AdamWOptions>(adamw->options);
  EXPECT_EQ(moments.learning_rate, 0.5);
  EXPECT_EQ(moments.beta1, 0.9);
  EXPECT_EQ(moments.beta2, 0.75);
  EXPECT_EQ(moments.eps, 0.1);
  EXPECT_EQ(moments.weight_decay, 0.2);
  EXPECT_TRUE(moments.amsgrad);
  const auto adagrad = FromProto(Text(kAdagrad));
  ASSERT_THAT(adagrad, IsOk());
  const auto& squares = std::get<AdagradOptions>(adagrad->options);
  EXPECT_EQ(squares.lr_decay, 0.1);
  EXPECT_EQ(squares.weight_decay, 0.2);
  EXPECT_EQ(squares.initial_accumulator_value, 0.3);
  EXPECT_EQ(squares.eps, 0.4);
  const auto rmsprop = FromProto(Text(kRmsProp));
  ASSERT_THAT(rmsprop, IsOk());
  const auto& mean = std::get<RmsPropOptions>(rmsprop->options);
  EXPECT_EQ(mean.alpha, 0.9);
  EXPECT_EQ(mean.eps, 0.1);
  EXPECT_EQ(mean.weight_decay, 0.2);
  EXPECT_EQ(mean.momentum, 0.3);
  EXPECT_TRUE(mean.centered);
}

TEST(WireOptimizerTest, RefusesNoOptimizer) {
  EXPECT_THAT(Read(""), IsError(Reason::kBadOptimizer, HasSubstr("it knows sgd, adam, adamw,")));
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
  for (const OptimizerOptions& options : AllFilled()) {
    const v1::OptimizerConfig message = ToProto({options});
    const auto* const reflection = message.GetReflection();
    const auto* const kind = reflection->GetOneofFieldDescriptor(
        message, message.GetDescriptor()->FindOneofByName("optimizer"));
    for (int i = 0; i < kind->message_type()->field_count(); ++i) {
      const auto* const field = kind->message_type()->field(i);
      if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_DOUBLE) continue;
      for (const double value :
           {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
        v1::OptimizerConfig bad = message;
        google::protobuf::Message* const own = reflection->MutableMessage(&bad, kind);
        own->GetReflection()->SetDouble(own, field, value);
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
              IsError(Reason::kBadOptimizer, HasSubstr("unknown to this server")));
  EXPECT_THAT(Read("sgd {} groups { parameters: \"a\" options { averaging {} } }"),
              IsError(Reason::kBadOptimizer, HasSubstr("is of averaging, expected sgd")));
  EXPECT_THAT(Read("sgd {} groups { parameters: \"a\" options { sgd {} groups {} } }"),
              IsError(Reason::kBadOptimizer, HasSubstr("groups or tables of its own")));
}

}  // namespace
}  // namespace sluice
