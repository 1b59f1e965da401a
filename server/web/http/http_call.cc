#include "server/web/http/http_call.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/security/certificate_facts.h"
#include "common/security/secret.h"
#include "server/web/http/client_certificate.h"
#include "server/web/http/http_rules.h"

namespace sluice {
namespace {

constexpr size_t kStreamBlock = 4096;  // bytes that a stream hands to the library at once

int SocketOf(MHD_Connection* connection) {
  return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

// The numeric address at which the connection has arrived, an IPv4 one as such.
std::string LocalAddress(int socket) {
  sockaddr_storage name = {};
  socklen_t size = sizeof(name);
  char text[NI_MAXHOST] = "";
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&name), &size) != 0) return "";
  getnameinfo(reinterpret_cast<sockaddr*>(&name), size, text, sizeof(text), nullptr, 0,
              NI_NUMERICHOST);
  return std::string(absl::StripPrefix(text, "::ffff:"));
}

MHD_Result AddToQuery(void* query, MHD_ValueKind, const char* name, const char* value) {
  (*static_cast<std::map<std::string, std::string>*>(query))[name] = value == nullptr ? "" : value;
  return MHD_YES;
}

// ---- Streams ----

// One reader of a feed. The response owns it.
struct HttpStream {
  HttpSite& site;
  HttpFeed& feed;
  MHD_Connection* const connection;
  HttpFeed::Message message;
  size_t sent = 0;  // bytes of the message
};

// Puts the next bytes into `to`. If there are none, the library does not ask again, and spends no
// time on the connection, until the feed wakes it.
ssize_t ReadStream(void* self, uint64_t, char* to, size_t most) {
  HttpStream& stream = *static_cast<HttpStream*>(self);
  if (stream.message.text == nullptr || stream.sent == stream.message.text->size()) {
    MHD_Connection* const connection = stream.connection;
    const int socket = SocketOf(connection);
    const auto park = [&] {
      stream.site.connections->Rest(socket);
      MHD_suspend_connection(connection);
    };
    const HttpFeed::Message next = stream.feed.Next(
        stream.message.number, park, [connection] { MHD_resume_connection(connection); });
    if (next.closed) return MHD_CONTENT_READER_END_OF_STREAM;
    if (next.text == nullptr) return 0;
    stream.site.connections->Renew(socket);
    stream.message = next;
    stream.sent = 0;
  }
  const absl::string_view rest = absl::string_view(*stream.message.text).substr(stream.sent, most);
  memcpy(to, rest.data(), rest.size());
  stream.sent += rest.size();
  return static_cast<ssize_t>(rest.size());
}

void DeleteStream(void* self) {
  auto* const stream = static_cast<HttpStream*>(self);
  if (--stream->site.streams == 0 && stream->site.ends) stream->site.no_streams.Raise();
  delete stream;
}

// ---- Responses ----

using Body = std::shared_ptr<const std::string>;

void DeleteBody(void* self) { delete static_cast<Body*>(self); }

MHD_Response* MakeResponse(const Body& body) {
  if (body == nullptr) return MHD_create_response_from_buffer(0, nullptr, MHD_RESPMEM_PERSISTENT);
  return MHD_create_response_from_buffer_with_free_callback_cls(
      body->size(), const_cast<char*>(body->data()), DeleteBody, new Body(body));
}

bool Queue(MHD_Connection* connection, int status, MHD_Response* response) {
  if (response == nullptr) return false;
  for (const auto& header : SecurityHeaders()) {
    MHD_add_response_header(response, header.first, header.second);
  }
  const bool queued =
      MHD_queue_response(connection, static_cast<unsigned>(status), response) == MHD_YES;
  MHD_destroy_response(response);  // the connection keeps it
  return queued;
}

}  // namespace

std::string HttpCall::Header(const char* name) const {
  const char* const value = MHD_lookup_connection_value(connection_, MHD_HEADER_KIND, name);
  return value == nullptr ? "" : value;
}

// ---- Rules ----

bool HttpCall::Begin() {
  refusal_ = Refusal();
  return !refusal_.has_value() || method_ != "POST" || Send(*refusal_);
}

absl::optional<HttpResponse> HttpCall::Refusal() {
  if (site_.connections->crowded_out(SocketOf(connection_))) {
    return HttpText(503, "Too many connections; try again.\n");
  }
  absl::optional<HttpResponse> refusal = WrongPlace();
  if (!refusal.has_value()) refusal = WrongCaller();
  if (!refusal.has_value()) refusal = WrongChange();
  return refusal;
}

bool HttpCall::HasOneHost() const {
  int count = 0;
  const auto add = [](void* sum, MHD_ValueKind, const char* name, const char*) {
    *static_cast<int*>(sum) += strcasecmp(name, MHD_HTTP_HEADER_HOST) == 0 ? 1 : 0;
    return MHD_YES;
  };
  MHD_get_connection_values(connection_, MHD_HEADER_KIND, add, &count);
  return count == 1;
}

bool HttpCall::IsCalledByItsName() const {
  const std::string host = HostOfHeader(Header(MHD_HTTP_HEADER_HOST));
  if (host.empty()) return false;
  if (IsLoopbackHost(host) || host == site_.host) return true;
  if (!site_.needs_credentials) return false;
  return host == LocalAddress(SocketOf(connection_)) ||
         (tls() && StandsFor(credentials_.certificate, host));
}

absl::optional<HttpResponse> HttpCall::WrongPlace() {
  if (!HasOneHost()) return HttpText(400, "A request needs one Host header.\n");
  if (!IsCalledByItsName()) {
    return HttpText(421, "The Host header names another server than this one.\n");
  }
  for (const HttpRoute& route : site_.routes) {
    if (route.path != path_) continue;
    allowed_ = route.method == "GET" ? "GET, HEAD" : route.method;
    if (route.method == method_) route_ = &route;
  }
  if (route_ != nullptr) return absl::nullopt;
  if (allowed_.empty()) return HttpText(404, "There is no such page.\n");
  return HttpText(405, "This page does not have that method.\n");
}

absl::optional<HttpResponse> HttpCall::WrongCaller() const {
  if (route_->open || !site_.needs_credentials) return absl::nullopt;
  if (!site_.token.empty() && BearsTheToken()) return absl::nullopt;
  if (!RolesOfTls().empty()) return absl::nullopt;
  return HttpText(401, "This needs the server's token, or with TLS a certificate with a role.\n");
}

// Those of the caller's certificate; none in plaintext.
Roles HttpCall::RolesOfTls() const {
  if (!tls()) return Roles();
  const auto* const session =
      MHD_get_connection_info(connection_, MHD_CONNECTION_INFO_GNUTLS_SESSION);
  return session == nullptr ? Roles() : RolesOfCaller(session->tls_session);
}

bool HttpCall::BearsTheToken() const {
  return BearsToken(Header(MHD_HTTP_HEADER_AUTHORIZATION), site_.token);
}

// What changes the server needs more than to be read. A browser shows a certificate by itself, also
// when a page of another site asks; but such a page cannot set these headers.
absl::optional<HttpResponse> HttpCall::WrongChange() const {
  if (route_->method != "POST") return absl::nullopt;
  if (!IsOwnOrigin(Header(MHD_HTTP_HEADER_ORIGIN), tls(), Header(MHD_HTTP_HEADER_HOST))) {
    return HttpText(403, "The Origin header must name this server's own page.\n");
  }
  if (!HasRoleToChange()) {
    return HttpText(403, "A change needs a certificate with the role admin.\n");
  }
  if (!HasTokenToChange()) return HttpText(403, "A change needs the server's token.\n");
  if (!SameSecret(Header(kChangeHeader), site_.change_key)) {
    return HttpText(403, absl::StrCat("A change needs the header ", kChangeHeader,
                                      ", with the key of the server's own page.\n"));
  }
  return absl::nullopt;
}

// ---- Answers ----

void HttpCall::AddToBody(absl::string_view part) {
  body_too_large_ |= body_.size() + part.size() > site_.limits.body_bytes;
  if (!body_too_large_) absl::StrAppend(&body_, part);
}

bool HttpCall::Answer() {
  if (refusal_.has_value()) return Send(*refusal_);
  if (body_too_large_) return Send(HttpText(413, "The body of the request is too large.\n"));
  if (route_->feed != nullptr) return SendStream(*route_->feed);
  HttpRequest request;
  request.if_none_match = Header(MHD_HTTP_HEADER_IF_NONE_MATCH);
  request.body = std::move(body_);
  if (route_->tells_key && HasRoleToChange()) {
    request.lacks_only_token = !HasTokenToChange();
    if (!request.lacks_only_token) request.change_key = site_.change_key;
  }
  MHD_get_connection_values(connection_, MHD_GET_ARGUMENT_KIND, AddToQuery, &request.query);
  HttpResponse response = route_->handle(request);
  if (!response.etag.empty() && response.etag == request.if_none_match) {
    response.status = 304;
    response.body = nullptr;
  }
  return Send(response);
}

bool HttpCall::Send(const HttpResponse& response) {
  MHD_Response* const made = MakeResponse(response.body);
  if (made == nullptr) return false;
  MHD_add_response_header(made, MHD_HTTP_HEADER_CONTENT_TYPE, response.content_type.c_str());
  MHD_add_response_header(made, MHD_HTTP_HEADER_CACHE_CONTROL,
                          response.etag.empty() ? "no-store" : "no-cache");
  if (!response.etag.empty()) {
    MHD_add_response_header(made, MHD_HTTP_HEADER_ETAG, response.etag.c_str());
  }
  if (response.status == 401) {
    MHD_add_response_header(made, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
  }
  if (response.status == 503) {
    MHD_add_response_header(made, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    MHD_add_response_header(made, MHD_HTTP_HEADER_CONNECTION, "close");
  }
  if (response.status == 405) {
    MHD_add_response_header(made, MHD_HTTP_HEADER_ALLOW, allowed_.c_str());
  }
  return Queue(connection_, response.status, made);
}

bool HttpCall::SendStream(HttpFeed& feed) {
  if (++site_.streams > site_.limits.streams) {
    --site_.streams;
    return Send(HttpText(503, "Too many streams of events are open; try again.\n"));
  }
  MHD_Response* const made = MHD_create_response_from_callback(
      MHD_SIZE_UNKNOWN, kStreamBlock, ReadStream, new HttpStream{site_, feed, connection_, {}, 0},
      DeleteStream);
  if (made == nullptr) return false;
  MHD_add_response_header(made, MHD_HTTP_HEADER_CONTENT_TYPE, "text/event-stream");
  MHD_add_response_header(made, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
  return Queue(connection_, 200, made);
}

}  // namespace sluice
