// What the page's routes answer as the job goes on.

#include "server/web/page/live_page.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace sluice {
namespace {

v1::EncodedBytes Encoded(const std::string& encoding, uint64_t tensor, uint64_t wire) {
  v1::EncodedBytes bytes;
  bytes.set_encoding(encoding);
  bytes.set_tensor_bytes(tensor);
  bytes.set_wire_bytes(wire);
  return bytes;
}

class LivePageTest : public ::testing::Test {
 protected:
  HttpResponse Get(const std::string& path) {
    for (const HttpRoute& route : page_.Routes()) {
      if (route.path == path) return route.handle(HttpRequest());
    }
    ADD_FAILURE() << "no route " << path;
    return {};
  }

  // Returns when the page has taken it.
  void Show(Step step) {
    JobMoment input;
    input.time = absl::FromUnixSeconds(5000) + absl::Seconds(step.value());
    input.state.set_step(step.value());
    page_.End(input);
  }

  LivePage page_{LivePageOptions()};
};

TEST_F(LivePageTest, ReadersOfAHistoryShareItsTextUntilARowComes) {
  Show(Step(1));
  const HttpResponse first = Get("/api/history");
  EXPECT_EQ(Get("/api/history").body, first.body);  // not a copy
  Show(Step(2));
  const HttpResponse next = Get("/api/history");
  const auto times = [](const HttpResponse& response) {
    return nlohmann::json::parse(*response.body)["columns"]["time"];
  };
  EXPECT_EQ(times(first), nlohmann::json({5001}));
  EXPECT_EQ(times(next), nlohmann::json({5001, 5002}));
}

TEST_F(LivePageTest, SaysThatTheServerGoesDown) {
  const auto goes_down = [this] {
    return nlohmann::json::parse(*Get("/api/state").body)["going_down"].get<bool>();
  };
  Show(Step(1));
  EXPECT_FALSE(goes_down());
  JobMoment last;
  last.time = absl::FromUnixSeconds(5002);
  last.going_down = true;
  page_.End(last);
  EXPECT_TRUE(goes_down());
}

TEST_F(LivePageTest, ShowsTheLimitOfGradientsInFlightAndTheBytesOfEachEncoding) {
  JobMoment input;
  input.time = absl::FromUnixSeconds(5001);
  input.state.mutable_in_flight()->set_bytes(5);
  input.state.mutable_in_flight()->set_limit(7);
  input.state.mutable_in_flight()->set_waiting(2);
  *input.state.add_received_by_encoding() = Encoded("int8", 400, 100);
  *input.state.add_sent_by_encoding() = Encoded("custom", 40, 10);
  page_.End(input);
  const nlohmann::json state = nlohmann::json::parse(*Get("/api/state").body);
  EXPECT_EQ(state["in_flight"], (nlohmann::json{{"bytes", 5}, {"limit", 7}, {"waiting", 2}}));
  EXPECT_EQ(state["bytes_by_encoding"].dump(), R"({"received":{"int8":{"tensor":400,"wire":100}},)"
                                               R"("sent":{"custom":{"tensor":40,"wire":10}}})");
}

TEST_F(LivePageTest, ShowsWhatWasMeasuredAndOfWhichStep) {
  JobMoment input;
  input.time = absl::FromUnixSeconds(5001);
  page_.End(input);
  const auto measured = [this] {
    return nlohmann::json::parse(*Get("/api/state").body)["measured"];
  };
  EXPECT_TRUE(measured().is_null());
  input.state.mutable_measurement()->set_step(7);
  (*input.state.mutable_measurement()->mutable_results())["test accuracy"] = 0.25;
  page_.End(input);
  EXPECT_EQ(measured().dump(), R"({"results":{"test accuracy":0.25},"step":7})");
}

TEST_F(LivePageTest, AVerdictIsGraveIfAllWorkersOfTheModelWithoutANameAreLost) {
  JobMoment input;
  input.time = absl::FromUnixSeconds(5001);
  const auto is_grave = [this, &input] {
    page_.End(input);
    return nlohmann::json::parse(*Get("/api/state").body)["verdict"]["grave"].get<bool>();
  };
  input.state.mutable_verdict()->set_kind(v1::Verdict::WORKERS_LOST);
  EXPECT_FALSE(is_grave());  // nobody has joined it: a model with a name has lost workers
  input.state.mutable_since_initialized()->set_seconds(9);
  EXPECT_TRUE(is_grave());
  input.state.mutable_worker_counts()->set_connected(1);
  EXPECT_FALSE(is_grave());
}

TEST_F(LivePageTest, ShowsTheSpeedThatTheVerdictTells) {
  JobMoment input;
  input.time = absl::FromUnixSeconds(5001);
  page_.End(input);
  const auto speed = [this] {
    return nlohmann::json::parse(*Get("/api/state").body)["steps_per_second"];
  };
  EXPECT_TRUE(speed().is_null());
  input.state.mutable_mean_step_time()->set_seconds(4);
  page_.End(input);
  EXPECT_EQ(speed(), 0.25);
}

v1::Worker WithLoss(const std::string& name, float loss) {
  v1::Worker worker;
  worker.set_worker(name);
  worker.set_presence(v1::PRESENT);
  worker.set_loss(loss);
  return worker;
}

TEST_F(LivePageTest, TheMedianOfTwoLossesIsTheirMean) {
  JobMoment input;
  input.time = absl::FromUnixSeconds(5001);
  input.workers = {WithLoss("a", 4), WithLoss("b", 1)};
  page_.End(input);
  const auto losses = [this] {
    return nlohmann::json::parse(*Get("/api/state").body)["summary"]["losses"];
  };
  EXPECT_EQ(losses(), nlohmann::json({1, 2.5, 4}));
  input.workers.push_back(WithLoss("c", 9));
  page_.End(input);
  EXPECT_EQ(losses(), nlohmann::json({1, 4, 9}));
}

v1::HotRow Hot(uint64_t id, uint64_t reads) {
  v1::HotRow row;
  row.set_id(id);
  row.set_reads(reads);
  return row;
}

TEST_F(LivePageTest, ShowsWhatAllServersHaveOfATable) {
  JobMoment input;
  input.time = absl::FromUnixSeconds(5001);
  input.tables.resize(1);
  v1::TableState& table = input.tables[0];
  table.mutable_table()->set_name("t0");
  table.set_rows(10);
  table.set_bytes(400);
  table.set_reads(20);
  table.set_hits(15);
  table.set_mean_age(5);
  *table.add_hottest() = Hot(3, 128);
  *table.add_hottest() = Hot(18446744073709551615U, 64);
  page_.End(input);
  const nlohmann::json tables = nlohmann::json::parse(*Get("/api/state").body)["row_tables"];
  EXPECT_EQ(tables["count"], 1);
  EXPECT_EQ(tables["first"].dump(),
            R"([{"bytes":400,"hits":15,"hottest":[{"id":"3","reads":128},)"
            R"({"id":"18446744073709551615","reads":64}],"mean_age":5.0,"name":"t0","reads":20,)"
            R"("rows":10}])");
}

TEST_F(LivePageTest, ShowsTwentyTablesAndHowManyThereAre) {
  JobMoment input;
  input.time = absl::FromUnixSeconds(5001);
  page_.End(input);
  const auto tables = [this] {
    return nlohmann::json::parse(*Get("/api/state").body)["row_tables"];
  };
  EXPECT_EQ(tables().dump(), R"({"count":0,"first":[]})");
  input.tables.resize(300);
  input.tables[19].mutable_table()->set_name("t19");
  page_.End(input);
  EXPECT_EQ(tables()["count"], 300);
  EXPECT_EQ(tables()["first"].size(), 20);
  EXPECT_EQ(tables()["first"][19]["name"], "t19");
}

TEST_F(LivePageTest, ShowsEachServerOfTheJob) {
  JobMoment input;
  input.time = absl::FromUnixSeconds(5001);
  input.servers.resize(2);
  v1::Server& first = input.servers[0];
  first.set_address("a:1");
  first.set_elements(20);
  first.set_step(7);
  first.set_wire_bytes_received(400);
  first.set_wire_bytes_sent(300);
  first.set_connected(true);
  first.mutable_since()->set_seconds(9);
  input.servers[1].set_index(1);
  input.state.mutable_awaited_server()->mutable_since()->set_seconds(2);
  page_.End(input);
  const nlohmann::json state = nlohmann::json::parse(*Get("/api/state").body);
  EXPECT_EQ(
      state["servers"].dump(),
      R"([{"address":"a:1","awaited":2.0,"connected":true,"elements":20,"since":9.0,"step":7,)"
      R"("wire_bytes_received":400,"wire_bytes_sent":300},)"
      R"({"address":"","awaited":null,"connected":false,"elements":0,"since":null,)"
      R"("step":null,"wire_bytes_received":0,"wire_bytes_sent":0}])");
}

}  // namespace
}  // namespace sluice
