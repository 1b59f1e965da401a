// What the page's routes answer as the job goes on.

#include "server/web/page/live_page.h"

#include <memory>
#include <string>

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
