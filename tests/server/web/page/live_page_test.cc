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
    LivePageInput input;
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

}  // namespace
}  // namespace sluice
