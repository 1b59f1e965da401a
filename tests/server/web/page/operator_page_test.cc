#include "server/web/page/operator_page.h"

#include <glog/logging.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/shard/change_settings.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

// Its shard has the workers "a" and "b" in sync, and no directory.
class OperatorPageTest : public ::testing::Test {
 protected:
  OperatorPageTest() : world_(Sync(2)) {
    world_.Start({"a", "b"});
    page_.Attach(world_.shard(), nullptr);
  }

  HttpResponse Ask(const std::string& method, const std::string& path, HttpRequest request) {
    for (const HttpRoute& route : page_.Routes()) {
      if (route.path == path && route.method == method) return route.handle(request);
    }
    ADD_FAILURE() << "no route " << path;
    return {};
  }
  HttpResponse Post(const std::string& path, std::string body = "{}") {
    HttpRequest request;
    request.body = std::move(body);
    return Ask("POST", path, std::move(request));
  }
  HttpResponse OutcomeOf(const std::string& save) {
    HttpRequest request;
    request.query["save"] = save;
    return Ask("GET", "/api/checkpoint", std::move(request));
  }
  static std::string TextOf(const HttpResponse& response) {
    return nlohmann::json::parse(*response.body)["text"].get<std::string>();
  }

  OperatorPage page_{"{\"mode\": \"SYNC\"}\n", std::make_shared<LogRing>()};
  ShardWorld world_;
};

TEST_F(OperatorPageTest, TellsTheKeyThatTheListenerGives) {
  HttpRequest request;
  request.change_key = "abc";
  EXPECT_EQ(*Ask("GET", "/api/operator", request).body, R"({"key":"abc","needs_token":false})");
}

TEST_F(OperatorPageTest, OnlyTheRouteThatTellsTheKeyGetsIt) {
  for (const HttpRoute& route : page_.Routes()) {
    EXPECT_EQ(route.tells_key, route.path == "/api/operator") << route.path;
    EXPECT_FALSE(route.open) << route.path;
  }
}

TEST_F(OperatorPageTest, ChangesTheLearningRateFromTheNextStepOn) {
  const HttpResponse changed = Post("/api/learning-rate", R"({"learning_rate": 0.25})");
  EXPECT_EQ(changed.status, 200);
  EXPECT_EQ(TextOf(changed), "The learning rate is 0.25 from step 0 on.");
  EXPECT_EQ(world_.shard().Describe().learning_rate, 0.25);
}

TEST_F(OperatorPageTest, RefusesALearningRateInTheShardsWords) {
  const HttpResponse refused = Post("/api/learning-rate", R"({"learning_rate": -1})");
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(TextOf(refused), ChangeLearningRate(world_.shard(), -1).status().message());
  for (const char* body : {"", "{}", "[1]", "{\"learning_rate\": \"1\"}", "{\"learning_rate\""}) {
    const HttpResponse absent = Post("/api/learning-rate", body);
    EXPECT_EQ(absent.status, 400) << body;
    EXPECT_THAT(TextOf(absent), HasSubstr("field learning_rate is absent")) << body;
  }
}

TEST_F(OperatorPageTest, EvictsAWorkerByName) {
  EXPECT_EQ(TextOf(Post("/api/evict", R"({"worker": "b"})")), "Worker b is evicted.");
  EXPECT_EQ(world_.shard().Describe().workers, 1U);
  const HttpResponse unknown = Post("/api/evict", R"({"worker": "c"})");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(TextOf(unknown), world_.shard().Evict("c").message());
  EXPECT_EQ(Post("/api/evict", R"({"worker": 3})").status, 400);
}

TEST_F(OperatorPageTest, DrainsTheJob) {
  EXPECT_EQ(TextOf(Post("/api/drain")), "The job ends at step 0.");
  EXPECT_EQ(world_.shard().Describe().phase, Phase::kDraining);
}

TEST_F(OperatorPageTest, WithoutADirectoryACheckpointFailsWithTheReason) {
  const HttpResponse begun = Post("/api/checkpoint");
  EXPECT_EQ(begun.status, 202);
  EXPECT_EQ(nlohmann::json::parse(*begun.body)["save"], 1);
  const HttpResponse outcome = OutcomeOf("1");
  EXPECT_EQ(outcome.status, 409);
  EXPECT_EQ(TextOf(outcome), "this server keeps no checkpoints; start it with --checkpoint-dir");
}

TEST_F(OperatorPageTest, KnowsOnlyTheLatestCheckpoints) {
  for (int i = 0; i < 17; ++i) Post("/api/checkpoint");
  for (const char* unknown : {"1", "0", "18", "-1", "x", ""}) {
    EXPECT_EQ(OutcomeOf(unknown).status, 404) << unknown;
  }
  EXPECT_EQ(OutcomeOf("2").status, 409);
  EXPECT_EQ(OutcomeOf("17").status, 409);
}

TEST_F(OperatorPageTest, TellsTheLatestLinesOfTheLogAndTheConfiguration) {
  for (int i = 0; i < 201; ++i) LOG(INFO) << "line " << i;
  LOG(WARNING) << "the \"last\" one";
  const auto record = nlohmann::json::parse(*Post("/api/record").body);
  EXPECT_EQ(record["configuration"], "{\"mode\": \"SYNC\"}\n");
  ASSERT_EQ(record["log"].size(), 200);
  EXPECT_EQ(record["log"][0]["text"], "line 2");
  EXPECT_EQ(record["log"][199]["text"], "the \"last\" one");
  EXPECT_EQ(record["log"][199]["severity"], "WARNING");
}

TEST_F(OperatorPageTest, ChangesNothingBetweenTwoIncarnations) {
  page_.Detach();
  for (const char* path : {"/api/drain", "/api/evict", "/api/learning-rate", "/api/checkpoint"}) {
    EXPECT_EQ(Post(path).status, 503) << path;
  }
  EXPECT_EQ(world_.shard().Describe().phase, Phase::kTraining);
}

}  // namespace
}  // namespace sluice
