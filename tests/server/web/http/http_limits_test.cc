// Peers that want more than the listener gives.

#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/web/http/http_server.h"
#include "tests/server/web/http/raw_client.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr char kOwn[] =
    "Host: localhost\r\nOrigin: http://localhost\r\nAuthorization: Bearer open sesame\r\n";

class HttpLimitsTest : public ::testing::Test {
 protected:
  void Serve(const HttpLimits& limits = {}) {
    HttpOptions options;
    options.address.host = "127.0.0.1";
    options.token = "open sesame";
    options.limits = limits;
    const HttpRoute change{"POST", "/change", [](const HttpRequest& request) {
                             return HttpText(200, absl::StrCat(request.body.size()));
                           }};
    HttpRoute key{"GET", "/key",
                  [](const HttpRequest& request) { return HttpText(200, request.change_key); }};
    key.tells_key = true;
    const HttpRoute large{"GET", "/large", [](const HttpRequest&) {
                            return HttpText(200, std::string(64 << 20, 'x'));
                          }};
    const HttpRoute events{"GET", "/events", nullptr, &feed_};
    const HttpRoute busy{"GET", "/busy", [this](const HttpRequest&) {
                           busy_.Notify();
                           free_.WaitForNotification();
                           return HttpText(200, "");
                         }};
    auto started = StartHttpServer(options, {change, key, large, events, busy});
    ASSERT_THAT(started, IsOk());
    server_ = *std::move(started);
  }

  std::unique_ptr<RawClient> Connect(int receive_bytes = 0) const {
    return std::make_unique<RawClient>(server_->address(), receive_bytes);
  }

  // The headers of a POST of the server's own page, with a body of so many bytes.
  std::string OwnHeaders(size_t body) const {
    const auto client = Connect();
    client->Ask("GET /key", absl::StrCat(kOwn, "Connection: close\r\n"));
    const std::string& answer = client->ReadAll();
    return absl::StrCat(kOwn, kChangeHeader, ": ", answer.substr(answer.find("\r\n\r\n") + 4),
                        "\r\nContent-Length: ", body, "\r\n");
  }

  void ExpectServed() const {
    const auto client = Connect();
    client->Ask("GET /nowhere");
    EXPECT_EQ(client->Status(), 404);
  }

  // Returns once a request is answered. A busy machine, or a short limit, may end some before.
  void AwaitServed() const {
    while (true) {
      const auto client = Connect();
      if (client->Ask("GET /nowhere") && client->Status() == 404) return;
    }
  }

  // How many connections were answered with each status, 0 for those that were closed, if so many
  // have sent a request while the listener was busy. It finds all that it took ready at once.
  std::map<int, size_t> AnswersToACrowd(size_t connections) {
    std::vector<std::unique_ptr<RawClient>> crowd;
    for (size_t i = 0; i < connections; ++i) {
      crowd.push_back(Connect());
      crowd.back()->Ask(i == 0 ? "GET /busy" : "GET /nowhere");
      if (i == 0) busy_.WaitForNotification();
    }
    crowd.back()->ReadAll();  // it was the last, and is closed: the others were taken, or closed
    free_.Notify();
    std::map<int, size_t> answers;
    for (const auto& peer : crowd) ++answers[peer->Status()];
    return answers;
  }

  HttpFeed feed_;
  absl::Notification busy_, free_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpLimitsTest, RefusesHugeHeaders) {
  Serve();
  const auto client = Connect();
  client->Ask("GET /events",
              absl::StrCat("Host: localhost\r\nX: ", std::string(1 << 20, 'x'), "\r\n"));
  EXPECT_EQ(client->Status(), 431);
  ExpectServed();
}

TEST_F(HttpLimitsTest, RefusesAHugePath) {
  Serve();
  const auto client = Connect();
  client->Ask(absl::StrCat("GET /", std::string(1 << 20, 'x')));
  EXPECT_EQ(client->Status(), 414);
  ExpectServed();
}

TEST_F(HttpLimitsTest, TakesABodyUpToTheLimit) {
  Serve();
  const auto fits = Connect();
  fits->Ask("POST /change", OwnHeaders(16384));
  fits->Send(std::string(16384, 'x'));
  EXPECT_EQ(fits->Status(), 200);
  const auto large = Connect();
  large->Ask("POST /change", OwnHeaders(16385));
  large->Send(std::string(16385, 'x'));
  EXPECT_EQ(large->Status(), 413);
}

TEST_F(HttpLimitsTest, EndsConnectionsThatAreNoHttp) {
  Serve();
  const auto client = Connect();
  client->Send(std::string("\x16\x03\x01\0\x05hello\r\n\r\n", 14));
  client->ReadAll();  // returns
  ExpectServed();
}

TEST_F(HttpLimitsTest, EndsAConnectionWhoseHeadersDoNotComeInTime) {
  HttpLimits limits;
  limits.exchange = absl::Milliseconds(100);
  Serve(limits);
  const auto silent = Connect();
  const auto slow = Connect();
  slow->Send("GET / HTTP/1.1\r\nHost: local");
  EXPECT_EQ(silent->ReadAll(), "");
  EXPECT_EQ(slow->ReadAll(), "");
}

TEST_F(HttpLimitsTest, EndsAConnectionThatDoesNotReadItsAnswerInTime) {
  HttpLimits limits;
  limits.exchange = absl::Milliseconds(100);
  Serve(limits);
  const auto slow = Connect(4096);
  slow->Ask("GET /large");
  AwaitServed();
  for (int i = 0; i < 3; ++i) {  // each is ended only after its own time, when the first one is
    const auto silent = Connect();
    EXPECT_EQ(silent->ReadAll(), "");
  }
  EXPECT_LT(slow->ReadAll().size(), size_t{64} << 20);
}

TEST_F(HttpLimitsTest, OfManyStreamsOnlySoManyAreServed) {
  Serve();
  std::vector<std::unique_ptr<RawClient>> streams;
  for (size_t i = 0; i < HttpLimits().streams; ++i) {
    streams.push_back(Connect());
    streams.back()->Ask("GET /events");
    EXPECT_EQ(streams.back()->Status(), 200);
  }
  const auto further = Connect();
  further->Ask("GET /events");
  EXPECT_EQ(further->Status(), 503);
  ExpectServed();
  feed_.Publish("data: all\n\n");
  for (const auto& stream : streams) {
    EXPECT_THAT(stream->ReadUntil("all\n\n"), HasSubstr("data: all\n\n"));
  }
}

TEST_F(HttpLimitsTest, FiveHundredStreamsAreServedOrRefusedAndNothingElseSuffers) {
  Serve();
  std::vector<std::unique_ptr<RawClient>> peers;
  for (int i = 0; i < 500; ++i) {
    peers.push_back(Connect());
    peers.back()->Ask("GET /events");
  }
  feed_.Publish("data: all\n\n");
  int served = 0;
  for (const auto& peer : peers) {
    const int status = peer->Status();
    served += status == 200 ? 1 : 0;
    EXPECT_TRUE(status == 200 || status == 503 || status == 0) << status;
  }
  EXPECT_LE(served, static_cast<int>(HttpLimits().streams));
  EXPECT_GE(served, 1);
  peers.clear();
  // Those that are gone are noticed with the next event.
  feed_.Publish("data: again\n\n");
  AwaitServed();
}

TEST_F(HttpLimitsTest, RequestsBeyondTheServedConnectionsGet503AndFurtherOnesAreClosed) {
  HttpLimits limits;
  limits.connections = 4;
  limits.served = 2;
  Serve(limits);
  std::vector<std::unique_ptr<RawClient>> open;
  for (const int expected : {404, 404, 503}) {
    open.push_back(Connect());
    open.back()->Ask("GET /nowhere");
    EXPECT_EQ(open.back()->Status(), expected);
  }
  open.back()->ReadAll();  // returns, because the connection is closed
  open.pop_back();
  open.push_back(Connect());
  open.push_back(Connect());
  EXPECT_EQ(Connect()->ReadAll(), "");
}

class HttpCrowdTest : public HttpLimitsTest, public ::testing::WithParamInterface<size_t> {};

TEST_P(HttpCrowdTest, IsAnsweredAtOnceHoweverManyAreReadyTogether) {
  HttpLimits limits;
  limits.exchange = absl::Hours(1);  // no connection ends because it was served late
  Serve(limits);
  EXPECT_THAT(AnswersToACrowd(GetParam()),
              UnorderedElementsAre(Pair(200, 1), Pair(404, limits.served - 1),
                                   Pair(503, limits.connections - limits.served),
                                   Pair(0, GetParam() - limits.connections)));
  AwaitServed();
}

INSTANTIATE_TEST_SUITE_P(Connections, HttpCrowdTest, ::testing::Values(121, 128, 129, 200, 400));

TEST_F(HttpLimitsTest, ASlowReaderOfEventsGetsTheNewestAndBlocksNobody) {
  Serve();
  const auto slow = Connect(4096);
  slow->Ask("GET /events");
  EXPECT_EQ(slow->Status(), 200);
  const auto fast = Connect();
  fast->Ask("GET /events");
  EXPECT_EQ(fast->Status(), 200);
  const std::string padding(1 << 20, 'x');
  for (int i = 0; i < 20; ++i) {
    feed_.Publish(absl::StrCat("data: ", i, padding, "\n\n"));
    fast->ReadUntil(absl::StrCat("data: ", i, "x"));
  }
  feed_.Publish("data: last\n\n");
  fast->ReadUntil("data: last\n\n");
  // It was not there to read, so it has skipped most of them.
  EXPECT_LT(slow->ReadUntil("data: last\n\n").size(), size_t{12} << 20);
}

}  // namespace
}  // namespace sluice
