// One request on its way through the rules to its route, and the response on its way back.

#ifndef SLUICE_SERVER_WEB_HTTP_HTTP_CALL_H_
#define SLUICE_SERVER_WEB_HTTP_HTTP_CALL_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "common/security/role.h"
#include "server/web/http/http_daemon.h"

struct MHD_Connection;

namespace sluice {

// The library's thread makes it when it has read a request's headers, and deletes it when the
// response has been sent.
class HttpCall {
 public:
  HttpCall(HttpSite& site, const Credentials& credentials, MHD_Connection* connection,
           absl::string_view method, absl::string_view path)
      : site_(site),
        credentials_(credentials),
        connection_(connection),
        method_(method == "HEAD" ? "GET" : method),
        path_(path) {}

  // Judges the headers. A refused POST is answered at once, and its body is not read; then the
  // connection ends. Returns false if it cannot be answered.
  bool Begin();
  // Takes a part of the body. What is beyond the limit is dropped.
  void AddToBody(absl::string_view part);
  // All is there: queues the refusal, or the answer of the route.
  bool Answer();

 private:
  absl::optional<HttpResponse> Refusal();
  bool Send(const HttpResponse& response);
  std::string Header(const char* name) const;
  bool HasOneHost() const;
  bool IsCalledByItsName() const;
  absl::optional<HttpResponse> WrongPlace();
  absl::optional<HttpResponse> WrongCaller() const;
  absl::optional<HttpResponse> WrongChange() const;
  Roles RolesOfTls() const;
  bool BearsTheToken() const;
  bool HasRoleToChange() const { return !tls() || RolesOfTls().Has(Role::kAdmin); }
  bool HasTokenToChange() const { return site_.token.empty() || BearsTheToken(); }
  bool tls() const { return !credentials_.key.empty(); }
  bool SendStream(HttpFeed& feed);

  HttpSite& site_;
  const Credentials& credentials_;
  MHD_Connection* const connection_;
  const std::string method_;
  const std::string path_;
  std::string allowed_;  // the methods of the path
  const HttpRoute* route_ = nullptr;
  absl::optional<HttpResponse> refusal_;
  std::string body_;
  bool body_too_large_ = false;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_WEB_HTTP_HTTP_CALL_H_
