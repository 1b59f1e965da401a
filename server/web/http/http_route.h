// What a listener serves: routes, the requests that they get, and the responses that they return.

#ifndef SLUICE_SERVER_WEB_HTTP_HTTP_ROUTE_H_
#define SLUICE_SERVER_WEB_HTTP_HTTP_ROUTE_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "server/web/http/http_feed.h"

namespace sluice {

// A request that the listener has admitted: its host, its caller and its size are as they must be.
struct HttpRequest {
  std::map<std::string, std::string> query;  // decoded; of a name that occurs twice, the last value
  std::string if_none_match;                 // the ETag that the caller has, in quotes; or empty
  std::string body;                          // of a POST
  // The next two are set for routes that tell the key.
  // If the caller may change the server: what its POSTs must bring as header kChangeHeader. Pages
  // of other sites cannot read it. Empty: the caller may not.
  std::string change_key;
  bool lacks_only_token = false;  // with the server's token the caller could change it
};

inline constexpr char kChangeHeader[] = "X-Sluice-Change";

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::shared_ptr<const std::string> body;  // null: none
  // Names the version of the body, in quotes. The caller may keep a body that has one, and asks
  // each time whether it is still the newest. Empty: the caller keeps nothing.
  std::string etag;
};

// A response with a body of its own.
inline HttpResponse HttpText(int status, std::string body,
                             std::string content_type = "text/plain; charset=utf-8") {
  return {status, std::move(content_type), std::make_shared<const std::string>(std::move(body)),
          ""};
}

struct HttpRoute {
  std::string method = "GET";  // or POST, for what changes the server; HEAD goes where GET goes
  std::string path;            // exact
  // Called on the listener's thread, one request at a time, so it must not wait for anything.
  std::function<HttpResponse(const HttpRequest&)> handle;
  // In place of `handle`: the response is a stream of events without end. Outlives the listener.
  HttpFeed* feed = nullptr;
  // Says nothing about the job, so that it needs no credentials: the page's own files.
  bool open = false;
  bool tells_key = false;  // it gets the key for changes
};

}  // namespace sluice

#endif  // SLUICE_SERVER_WEB_HTTP_HTTP_ROUTE_H_
