#include "server/web/http/http_rules.h"

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/net/address.h"
#include "common/security/secret.h"

namespace sluice {
namespace {

// Whether the rest of a Host header is nothing or a port.
bool IsPort(absl::string_view rest) {
  if (rest.empty()) return true;
  return absl::ConsumePrefix(&rest, ":") && !rest.empty() && rest.size() <= 5 &&
         absl::c_all_of(rest, absl::ascii_isdigit);
}

bool IsNameByte(char byte) {
  return absl::ascii_isalnum(byte) || byte == '.' || byte == '-' || byte == '_';
}

}  // namespace

std::string HostOfHeader(absl::string_view header) {
  const bool bracketed = absl::ConsumePrefix(&header, "[");
  const size_t end = bracketed ? header.find(']') : header.find(':');
  const absl::string_view host = header.substr(0, end);
  const absl::string_view rest = end == absl::string_view::npos ? "" : header.substr(end);
  const bool whole = bracketed ? end != absl::string_view::npos && IsPort(rest.substr(1))
                               : IsPort(rest) && absl::c_all_of(host, IsNameByte);
  return whole ? absl::AsciiStrToLower(host) : "";
}

bool IsLoopbackHost(const std::string& host) {
  Address address;
  address.host = host;
  return address.IsLocal();
}

bool BearsToken(absl::string_view authorization, absl::string_view token) {
  constexpr absl::string_view kScheme = "bearer ";
  if (!absl::StartsWithIgnoreCase(authorization, kScheme)) return false;
  return SameSecret(absl::StripAsciiWhitespace(authorization.substr(kScheme.size())), token);
}

bool IsOwnOrigin(absl::string_view origin, bool tls, absl::string_view host_header) {
  return absl::EqualsIgnoreCase(origin, absl::StrCat(tls ? "https://" : "http://", host_header));
}

absl::Span<const std::pair<const char*, const char*>> SecurityHeaders() {
  static constexpr std::pair<const char*, const char*> kHeaders[] = {
      {"Content-Security-Policy",
       "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src "
       "'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
      {"X-Content-Type-Options", "nosniff"},
      {"Referrer-Policy", "no-referrer"},
      {"Cross-Origin-Resource-Policy", "same-origin"},
      {"Cross-Origin-Opener-Policy", "same-origin"},
  };
  return kHeaders;
}

}  // namespace sluice
