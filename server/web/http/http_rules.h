// The rules by which a listener refuses a request, and the headers that tell a browser what it may
// do with a response. They know neither sockets nor the library that reads requests.

#ifndef SLUICE_SERVER_WEB_HTTP_HTTP_RULES_H_
#define SLUICE_SERVER_WEB_HTTP_HTTP_RULES_H_

#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace sluice {

// The host of a Host header, without its port and brackets and in lower case. Empty if the header
// is not "host", "host:port", "[ipv6]" or "[ipv6]:port".
std::string HostOfHeader(absl::string_view header);

// Whether a page may have been loaded from a server of that name or numeric address on this
// machine's loopback. A browser that was lured to another name that resolves to loopback (DNS
// rebinding) sends that name.
bool IsLoopbackHost(const std::string& host);

// Whether an Authorization header is "Bearer" with that token, which is not empty. The time that it
// takes does not tell how much of the token was right.
bool BearsToken(absl::string_view authorization, absl::string_view token);

// Whether an Origin header names the page of this very server: its scheme, and what the request's
// Host header says.
bool IsOwnOrigin(absl::string_view origin, bool tls, absl::string_view host_header);

// Headers of every response: no script or style but from files of this server, no frame around it,
// no guessing of types, no address told to others.
absl::Span<const std::pair<const char*, const char*>> SecurityHeaders();

}  // namespace sluice

#endif  // SLUICE_SERVER_WEB_HTTP_HTTP_RULES_H_
