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
    input.state.now = absl::FromUnixSeconds(7);
    input.state.step = step;
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
  input.state.in_flight = {5, 7, 2};
  input.state.traffic.received_by_transform[3] = {400, 100};
  input.state.traffic.sent_by_transform[8] = {40, 10};
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
  input.state.measured = {1, {Step(7), {{"test accuracy", 0.25}}}};
  page_.End(input);
  EXPECT_EQ(measured().dump(), R"({"results":{"test accuracy":0.25},"step":7})");
}

// The status of a job whose model has so many tables.
ShardStatus WithTables(size_t count) {
  ShardStatus state;
  LayoutRange bias;
  bias.name = "bias";
  bias.length = 1;
  std::vector<TableSpec> tables(count);
  for (size_t i = 0; i < count; ++i) {
    tables[i].name = absl::StrCat("t", i);
    tables[i].width = 8;
  }
  state.layout = std::make_shared<const Layout>(*Layout::Create({bias}, tables));
  state.each_server.resize(2);
  for (ServerStatus& server : state.each_server) server.figures.tables.resize(count);
  return state;
}

TEST_F(LivePageTest, ShowsWhatAllServersHaveOfATable) {
  constexpr RowId kLast = 18446744073709551615U;
  JobMoment input;
  input.time = absl::FromUnixSeconds(5001);
  input.state = WithTables(1);
  input.state.each_server[0].figures.tables[0] = {5, 0, 4, 300, 2, 1, 10, 8, 20, {{kLast, 64}}};
  input.state.each_server[1].figures.tables[0] = {5, 0, 0, 100, 0, 0, 10, 7, 30, {{3, 128}}};
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
  input.state = WithTables(300);
  page_.End(input);
  EXPECT_EQ(tables()["count"], 300);
  EXPECT_EQ(tables()["first"].size(), 20);
  EXPECT_EQ(tables()["first"][19]["name"], "t19");
}

TEST_F(LivePageTest, ShowsEachServerOfTheJob) {
  JobMoment input;
  input.time = absl::FromUnixSeconds(5001);
  input.state.each_server.resize(2);
  input.state.each_server[0] = {"a:1", 20, {Step(7), 400, 300}, true, absl::Seconds(9), {}};
  input.state.each_server[0].awaited = absl::Seconds(2);
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
