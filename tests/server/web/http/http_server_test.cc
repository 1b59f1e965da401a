// What the listener answers and refuses.

#include "server/web/http/http_server.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/web/http/raw_client.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kToken[] = "open sesame";
constexpr char kClose[] = "Connection: close\r\n";

class HttpServerTest : public ::testing::Test {
 protected:
  // With a route of each kind.
  void Serve(const std::string& host = "127.0.0.1", const std::string& token = kToken) {
    HttpOptions options;
    options.address.host = host;
    options.token = token;
    HttpRoute page{"GET", "/", [](const HttpRequest&) {
                     HttpResponse response = HttpText(200, "a page", "text/html; charset=utf-8");
                     response.etag = "\"v1\"";
                     return response;
                   }};
    page.open = true;
    HttpRoute echo{"GET", "/echo", [](const HttpRequest& request) {
                     std::string text;
                     for (const auto& one : request.query) {
                       absl::StrAppend(&text, one.first, "=", one.second, ";");
                     }
                     return HttpText(200, text);
                   }};
    HttpRoute change{"POST", "/change", [](const HttpRequest& request) {
                       return HttpText(200, absl::StrCat("changed: ", request.body));
                     }};
    HttpRoute key{"GET", "/key", [](const HttpRequest& request) {
                    return HttpText(200, request.lacks_only_token ? "token" : request.change_key);
                  }};
    key.tells_key = true;
    HttpRoute events{"GET", "/events", nullptr, &feed_};
    auto started = StartHttpServer(options, {page, echo, change, key, events});
    ASSERT_THAT(started, IsOk());
    server_ = *std::move(started);
  }

  // All that is answered to a request, after which the connection ends.
  std::string Answer(const std::string& method_and_path,
                     const std::string& headers = "Host: localhost\r\n",
                     const std::string& body = "") {
    RawClient client(server_->address());
    client.Ask(method_and_path, absl::StrCat(headers, kClose));
    client.Send(body);
    return client.ReadAll();
  }

  // The header that a POST needs, as a caller with these headers learns it.
  std::string KeyHeader(const std::string& headers) {
    const std::string answer = Answer("GET /key", headers);
    return absl::StrCat(kChangeHeader, ": ", answer.substr(answer.find("\r\n\r\n") + 4), "\r\n");
  }

  HttpFeed feed_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, ServesARouteWithHeadersThatKeepBrowsersWithinIt) {
  Serve();
  const std::string answer = Answer("GET /");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\na page"));
  EXPECT_THAT(answer, HasSubstr("Content-Type: text/html; charset=utf-8\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Security-Policy: default-src 'none'; script-src 'self'; "
                                "style-src 'self'; img-src 'self'; connect-src 'self'; base-uri "
                                "'none'; form-action 'none'; frame-ancestors 'none'\r\n"));
  EXPECT_THAT(answer, HasSubstr("X-Content-Type-Options: nosniff\r\n"));
  EXPECT_THAT(answer, Not(HasSubstr("Set-Cookie")));
  EXPECT_THAT(answer, Not(HasSubstr("Access-Control-Allow")));
}

TEST_F(HttpServerTest, AnswersHeadWithoutTheBody) {
  Serve();
  const std::string answer = Answer("HEAD /");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Length: 6\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
}

TEST_F(HttpServerTest, ACallerThatHasTheNewestVersionGetsNoBody) {
  Serve();
  EXPECT_THAT(Answer("GET /", "Host: localhost\r\nIf-None-Match: \"v1\"\r\n"),
              StartsWith("HTTP/1.1 304 Not Modified\r\n"));
  EXPECT_THAT(Answer("GET /", "Host: localhost\r\nIf-None-Match: \"v0\"\r\n"), EndsWith("a page"));
}

TEST_F(HttpServerTest, DecodesTheQuery) {
  Serve();
  EXPECT_THAT(Answer("GET /echo?since=7&name=a%20b&empty"),
              EndsWith("\r\n\r\nempty=;name=a b;since=7;"));
}

TEST_F(HttpServerTest, AnswersSeveralRequestsOfAConnection) {
  Serve();
  RawClient client(server_->address());
  for (int i = 0; i < 3; ++i) {
    client.Ask("GET /nowhere");
    EXPECT_EQ(client.Status(), 404);
  }
}

TEST_F(HttpServerTest, RefusesPathsAndMethodsThatDoNotExist) {
  Serve();
  EXPECT_THAT(Answer("GET /nowhere"), StartsWith("HTTP/1.1 404 Not Found\r\n"));
  EXPECT_THAT(Answer("GET /../etc/passwd"), StartsWith("HTTP/1.1 404 Not Found\r\n"));
  EXPECT_THAT(Answer("DELETE /"), HasSubstr("Allow: GET, HEAD\r\n"));
  EXPECT_THAT(Answer("GET /change"), HasSubstr("Allow: POST\r\n"));
  EXPECT_THAT(Answer("GET /change"), StartsWith("HTTP/1.1 405 Method Not Allowed\r\n"));
}

TEST_F(HttpServerTest, IsCalledByNamesOfLoopbackOnly) {
  Serve();
  for (const char* host : {"localhost", "localhost:9", "127.0.0.1:8080", "[::1]:8080"}) {
    EXPECT_THAT(Answer("GET /", absl::StrCat("Host: ", host, "\r\n")), HasSubstr(" 200 OK"))
        << host;
  }
  for (const char* host : {"evil.example", "127.0.0.1.evil.example", "10.0.0.1", "a b"}) {
    EXPECT_THAT(Answer("GET /", absl::StrCat("Host: ", host, "\r\n")), StartsWith("HTTP/1.1 421 "))
        << host;
  }
}

TEST_F(HttpServerTest, NeedsExactlyOneHost) {
  Serve();
  EXPECT_THAT(Answer("GET /", ""), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(Answer("GET /", "Host: localhost\r\nHost: evil.example\r\n"),
              StartsWith("HTTP/1.1 400 "));
}

TEST_F(HttpServerTest, BeyondLoopbackOnlyOpenRoutesNeedNoToken) {
  Serve("0.0.0.0");
  EXPECT_THAT(Answer("GET /"), StartsWith("HTTP/1.1 200 OK\r\n"));
  for (const char* path : {"/echo", "/events"}) {
    const std::string refused = Answer(absl::StrCat("GET ", path));
    EXPECT_THAT(refused, StartsWith("HTTP/1.1 401 Unauthorized\r\n"));
    EXPECT_THAT(refused, HasSubstr("WWW-Authenticate: Bearer\r\n"));
  }
  EXPECT_THAT(Answer("GET /echo", "Host: localhost\r\nAuthorization: Bearer wrong\r\n"),
              StartsWith("HTTP/1.1 401 "));
  EXPECT_THAT(Answer("GET /echo", "Host: localhost\r\nAuthorization: Bearer open sesame\r\n"),
              StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST_F(HttpServerTest, BeyondLoopbackItIsCalledByTheAddressAtWhichTheConnectionArrives) {
  Serve("0.0.0.0");
  EXPECT_THAT(Answer("GET /", "Host: 127.0.0.1\r\n"), StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(Answer("GET /", "Host: 10.1.2.3\r\n"), StartsWith("HTTP/1.1 421 "));
  EXPECT_THAT(Answer("GET /", "Host: evil.example\r\n"), StartsWith("HTTP/1.1 421 "));
}

TEST_F(HttpServerTest, AChangeNeedsItsOwnPagesOriginAndTheTokenAndTheKey) {
  Serve();
  const std::string host = "Host: localhost:80\r\n";
  const std::string own = "Origin: http://localhost:80\r\n";
  const std::string token = "Authorization: Bearer open sesame\r\n";
  const std::string key = KeyHeader(host + token);
  const auto change = [&](const std::string& headers) {
    return Answer("POST /change", absl::StrCat("Content-Length: 3\r\n", host, headers), "abc");
  };
  EXPECT_THAT(change(own + token + key), EndsWith("\r\n\r\nchanged: abc"));
  EXPECT_THAT(change(token + key), StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(change("Origin: http://evil.example\r\n" + token + key), StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(change("Origin: null\r\n" + token + key), StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(change(own + key), EndsWith("\r\n\r\nA change needs the server's token.\n"));
  EXPECT_THAT(change(own + token), EndsWith("\r\n\r\nA change needs the header X-Sluice-Change, "
                                            "with the key of the server's own page.\n"));
  EXPECT_THAT(change(own + token + "X-Sluice-Change: 0\r\n"), StartsWith("HTTP/1.1 403 "));
}

TEST_F(HttpServerTest, WhoeverMayNotChangeTheServerLearnsNoKey) {
  Serve();
  EXPECT_THAT(Answer("GET /key"), EndsWith("\r\n\r\ntoken"));
  EXPECT_THAT(Answer("GET /key", "Host: localhost\r\nAuthorization: Bearer wrong\r\n"),
              EndsWith("\r\n\r\ntoken"));
}

TEST_F(HttpServerTest, WithoutATokenEachCallerOnLoopbackMayChangeItUnderALoopbackName) {
  Serve("127.0.0.1", "");
  const std::string key = KeyHeader("Host: localhost\r\n");
  const auto change = [&](const std::string& host, const std::string& origin) {
    return Answer(
        "POST /change",
        absl::StrCat("Content-Length: 3\r\nHost: ", host, "\r\nOrigin: ", origin, "\r\n", key),
        "abc");
  };
  EXPECT_THAT(change("localhost", "http://localhost"), EndsWith("\r\n\r\nchanged: abc"));
  EXPECT_THAT(change("127.0.0.1", "http://127.0.0.1"), EndsWith("\r\n\r\nchanged: abc"));
  // Another site's page, under its own name and under a name that now leads to loopback.
  EXPECT_THAT(change("localhost", "http://evil.example"), StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(change("evil.example", "http://evil.example"), StartsWith("HTTP/1.1 421 "));
  EXPECT_THAT(Answer("POST /change",
                     "Host: localhost\r\nOrigin: http://localhost\r\nContent-Length: 0\r\n"),
              StartsWith("HTTP/1.1 403 "));
}

TEST_F(HttpServerTest, StreamsEventsAsTheyArePublished) {
  Serve();
  RawClient client(server_->address());
  client.Ask("GET /events");
  EXPECT_EQ(client.Status(), 200);
  feed_.Publish("data: one\n\n");
  EXPECT_THAT(client.ReadUntil("one\n\n"), HasSubstr("data: one\n\n"));
  feed_.Publish("data: two\n\n");
  EXPECT_THAT(client.ReadUntil("two\n\n"), HasSubstr("data: two\n\n"));
}

TEST_F(HttpServerTest, EndsItsStreamsWithTheLastMessageWhenItEnds) {
  Serve();
  RawClient waiting(server_->address());
  waiting.Ask("GET /events");
  EXPECT_EQ(waiting.Status(), 200);
  feed_.Publish("data: last\n\n");
  server_ = nullptr;
  EXPECT_THAT(waiting.ReadAll(), HasSubstr("data: last\n\n"));
}

TEST_F(HttpServerTest, SaysWhyItCannotListen) {
  Serve();
  HttpOptions options;
  options.address = server_->address();
  EXPECT_THAT(StartHttpServer(options, {}),
              HasCode(absl::StatusCode::kUnavailable, HasSubstr("Address already in use")));
}

TEST_F(HttpServerTest, ListenersShareAnAddress) {
  HttpOptions options;
  options.address.host = "127.0.0.1";
  HttpListeners listeners;
  const auto says = [](const char* text) {
    return [text](const HttpRequest&) { return HttpText(200, text); };
  };
  listeners.Add(options, {{"GET", "/", says("page")}});
  listeners.Add(options, {{"GET", "/metrics", says("metrics")}});
  ASSERT_THAT(listeners.Start(), IsOk());
  ASSERT_NE(listeners.Of("/"), nullptr);
  EXPECT_EQ(listeners.Of("/"), listeners.Of("/metrics"));
  EXPECT_EQ(listeners.Of("/nowhere"), nullptr);
  EXPECT_EQ(listeners.Of("/")->url(),
            absl::StrCat("http://127.0.0.1:", listeners.Of("/")->address().port, "/"));
}

TEST(HttpOptionsTest, BeyondLoopbackItNeedsTlsOrATokenOnATrustedNetwork) {
  HttpOptions options;
  options.address = *ParseAddress("127.0.0.1:8080");
  EXPECT_THAT(CheckHttpOptions(options, false, "--page"), IsOk());
  options.address = *ParseAddress("0.0.0.0:8080");
  EXPECT_THAT(CheckHttpOptions(options, false, "--page"),
              HasCode(absl::StatusCode::kInvalidArgument,
                      StartsWith("--page=0.0.0.0:8080 is beyond loopback, where the network could "
                                 "read all of it; give --tls-cert")));
  EXPECT_THAT(CheckHttpOptions(options, true, "--page"),
              HasCode(absl::StatusCode::kInvalidArgument, EndsWith("give --token-file")));
  options.token = kToken;
  EXPECT_THAT(CheckHttpOptions(options, true, "--page"), IsOk());
  EXPECT_THAT(CheckHttpOptions(options, false, "--page"),
              HasCode(absl::StatusCode::kInvalidArgument, HasSubstr("--insecure-on-network")));
  options.credentials = SourceOf(Credentials());
  EXPECT_THAT(CheckHttpOptions(options, false, "--page"), IsOk());
}

TEST(HttpOptionsTest, AUnixSocketIsNoAddressOfABrowser) {
  HttpOptions options;
  options.address = *ParseAddress("unix:/tmp/page");
  EXPECT_THAT(CheckHttpOptions(options, false, "--metrics"),
              HasCode(absl::StatusCode::kInvalidArgument,
                      StartsWith("--metrics=unix:/tmp/page is a unix socket")));
}

}  // namespace
}  // namespace sluice
