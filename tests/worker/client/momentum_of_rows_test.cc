// An encoding with `:momentum` moves the momentum of the vector to the worker. Rows of tables are
// not encoded in that way, so the server has their momentum as without it.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/durable/faulty_files.h"
#include "tests/testing/durable/life.h"
#include "tests/testing/server/connect.h"
#include "tests/testing/shard/shard_connection.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"
#include "worker/client/parameter_client.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

constexpr double kMomentum = 0.5;
constexpr double kRate = 0.25;
constexpr uint32_t kSize = 2000;  // so many elements are encoded

// "items" has the optimizer of the model, "users" one of its own. With `size` 0 there are only
// tables.
Layout WithTables(uint32_t size) {
  TableSpec users;
  users.name = "users";
  users.width = 1;
  TableSpec items = users;
  items.name = "items";
  items.width = 2;
  const Layout vector = size == 0 ? Layout() : ParametersOnly(size);
  return *Layout::Create(vector.ranges(), {users, items});
}

JoinRequest RequestOf(const std::string& name, uint32_t size) {
  JoinRequest request = WorkerRequest(name);
  request.layout = WithTables(size);
  request.optimizer.options = SgdOptions{kRate, kMomentum};
  request.optimizer.tables = {{"users", SgdOptions{kRate}}};
  return request;
}

GradientEncoding EncodingOf(const std::string& choice) {
  GradientEncoding encoding;
  encoding.choice = *ParseEncodingChoice(choice);
  return encoding;
}

// Gradients of a row, of the first rounds. Odd rounds do not touch the second row.
Values OfFirstRow(int round) { return {static_cast<float>(round), 4}; }
constexpr float kOfSecondRow = 8;

class Trainer {
 public:
  Trainer(Shard& shard, const std::string& encoding, std::string name = "a", uint32_t size = kSize)
      : client_(std::make_unique<ShardConnection>(shard), EncodingOf(encoding)),
        name_(std::move(name)),
        parameters_(size) {}

  absl::Status Join() {
    return client_.Join(RequestOf(name_, static_cast<uint32_t>(parameters_.size())),
                        absl::MakeSpan(parameters_));
  }

  void Train(int from, int to) {
    for (int round = from; round < to; ++round) {
      const Values first = OfFirstRow(round);
      RowGradients rows = {{{0, {5}}, Share({first[0]})}, {{1, {5}}, Share(first)}};
      if (round % 2 == 0) {
        rows[1] = {{1, {5, 9}}, Share({first[0], first[1], kOfSecondRow, kOfSecondRow})};
      }
      client_.SetRows(std::move(rows));
      const SharedFloats gradient = Share(Values(parameters_.size(), 1.0F));
      ASSERT_THAT(client_.PushPull(gradient, 1, absl::nullopt, absl::MakeSpan(parameters_)),
                  IsOk());
    }
  }

  // That of "users", then those of "items".
  Values Rows() {
    Values rows(5);
    EXPECT_THAT(client_.PullRows({{0, {5}}, {1, {5, 9}}}, absl::MakeSpan(rows)), IsOk());
    return rows;
  }

 private:
  ParameterClient client_;
  const std::string name_;
  Values parameters_;
};

// One element that is trained by momentum SGD. All its numbers are exact in float.
class Element {
 public:
  explicit Element(double momentum) : momentum_(momentum) {}
  void Take(double gradient) {
    velocity_ = momentum_ * velocity_ + gradient;
    value_ -= kRate * velocity_;
  }
  float value() const { return static_cast<float>(value_); }

 private:
  const double momentum_;
  double velocity_ = 0;
  double value_ = 0;
};

// Rows() after the rounds 0 to `rounds` - 1.
Values RowsAfter(int rounds) {
  Element user(0);
  Element first[] = {Element(kMomentum), Element(kMomentum)};
  Element second(kMomentum);
  for (int round = 0; round < rounds; ++round) {
    const Values gradient = OfFirstRow(round);
    user.Take(gradient[0]);
    for (int i = 0; i < 2; ++i) first[i].Take(gradient[i]);
    if (round % 2 == 0) second.Take(kOfSecondRow);
  }
  return {user.value(), first[0].value(), first[1].value(), second.value(), second.value()};
}

double MomentumOf(const OptimizerOptions& options) {
  return std::get<SgdOptions>(options).momentum;
}

TEST(MomentumOfRowsTest, IsTheServersWhateverTheEncodingOfTheVector) {
  for (const char* encoding :
       {"none", "sign", "sign:momentum", "top-k:0.01", "top-k:0.01:momentum:warmup=3"}) {
    ShardWorld world(Sync(1));
    Trainer trainer(world.shard(), encoding);
    ASSERT_THAT(trainer.Join(), IsOk());
    trainer.Train(0, 6);
    EXPECT_EQ(trainer.Rows(), RowsAfter(6)) << encoding;
  }
}

TEST(MomentumOfRowsTest, StaysWhereThatOfTheVectorLeavesTheServer) {
  ShardWorld world(Sync(1));
  Trainer trainer(world.shard(), "sign:momentum");
  ASSERT_THAT(trainer.Join(), IsOk());
  const auto optimizer = world.shard().Describe().optimizer;
  EXPECT_EQ(MomentumOf(optimizer->options), 0);
  EXPECT_EQ(MomentumOf(OptionsFor(*optimizer, "items")), kMomentum);
  EXPECT_EQ(MomentumOf(OptionsFor(*optimizer, "users")), 0);
}

TEST(MomentumOfRowsTest, AModelOfTablesOnlyHasIt) {
  ShardWorld world(Sync(1));
  Trainer trainer(world.shard(), "sign:momentum", "a", 0);
  ASSERT_THAT(trainer.Join(), IsOk());
  trainer.Train(0, 6);
  EXPECT_EQ(trainer.Rows(), RowsAfter(6));
}

TEST(MomentumOfRowsTest, AWorkerThatJoinsLaterContinuesItIfItHasTheSameEncoding) {
  ShardWorld world(Async(1));
  Trainer first(world.shard(), "sign:momentum", "a");
  ASSERT_THAT(first.Join(), IsOk());
  first.Train(0, 3);
  Trainer other(world.shard(), "sign", "b");
  EXPECT_THAT(other.Join(), IsError(Reason::kOptimizerMismatch, HasSubstr("momentum")));
  Trainer second(world.shard(), "sign:momentum", "b");
  ASSERT_THAT(second.Join(), IsOk());
  second.Train(3, 6);
  EXPECT_EQ(second.Rows(), RowsAfter(6));
}

TEST(MomentumOfRowsTest, AServerThatIsStartedAgainContinuesIt) {
  FaultyFiles files;
  DurableOptions options;
  options.directory = absl::StrCat(::testing::TempDir(), "momentum_of_rows");
  options.durability = Durability::kJournal;
  for (const int begin : {0, 3}) {
    Life life(options, files);
    Trainer trainer(life.world().shard(), "top-k:0.01:momentum");
    ASSERT_THAT(trainer.Join(), IsOk());
    trainer.Train(begin, begin + 3);
    EXPECT_EQ(trainer.Rows(), RowsAfter(begin + 3));
  }
}

}  // namespace
}  // namespace sluice
