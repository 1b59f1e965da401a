#include "common/net/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/error.h"

namespace sluice {
namespace {

constexpr absl::string_view kUnixPrefix = "unix:";

absl::Status BadAddress(absl::string_view text, absl::string_view problem) {
  return MakeError(Reason::kBadArgument,
                   absl::StrCat("address \"", Shown(text), "\" ", problem,
                                "; expected host:port, [ipv6]:port or unix:/path"));
}

absl::StatusOr<Address> ParseUnix(absl::string_view text) {
  Address address;
  address.unix_path = std::string(absl::StripPrefix(text, kUnixPrefix));
  if (!absl::StartsWith(address.unix_path, "/")) return BadAddress(text, "has no absolute path");
  if (address.unix_path.size() > Address::kMaxUnixPath) {
    return BadAddress(text, absl::StrCat("has a path of ", address.unix_path.size(),
                                         " bytes, more than the system's ", Address::kMaxUnixPath));
  }
  return address;
}

}  // namespace

bool Address::IsLocal() const {
  if (is_unix() || host == "localhost") return true;
  in_addr ipv4;
  if (inet_pton(AF_INET, host.c_str(), &ipv4) == 1) return ntohl(ipv4.s_addr) >> 24 == 127;
  in6_addr ipv6;
  return inet_pton(AF_INET6, host.c_str(), &ipv6) == 1 && IN6_IS_ADDR_LOOPBACK(&ipv6);
}

std::string Address::ToString() const {
  if (is_unix()) return absl::StrCat(kUnixPrefix, unix_path);
  const bool ipv6 = absl::StrContains(host, ":");
  return ipv6 ? absl::StrCat("[", host, "]:", port) : absl::StrCat(host, ":", port);
}

absl::StatusOr<Address> ParseAddress(absl::string_view text) {
  if (absl::StartsWith(text, kUnixPrefix)) return ParseUnix(text);
  const size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos) return BadAddress(text, "has no port");
  absl::string_view host = text.substr(0, colon);
  const bool bracketed = absl::StartsWith(host, "[") && absl::EndsWith(host, "]");
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (host.empty()) return BadAddress(text, "has no host");
  if (host.find_first_of("[] ") != absl::string_view::npos) {
    return BadAddress(text, "has a stray bracket or space in its host");
  }
  if (!bracketed && absl::StrContains(host, ":"))
    return BadAddress(text, "needs brackets around its IPv6 host");
  if (bracketed && !absl::StrContains(host, ":"))
    return BadAddress(text, "has brackets around a host that is no IPv6 address");
  const absl::string_view digits = text.substr(colon + 1);
  const bool only_digits = absl::c_all_of(digits, absl::ascii_isdigit);
  uint32_t port = 0;
  if (!only_digits || !absl::SimpleAtoi(digits, &port) || port > 65535) {
    return BadAddress(text, "has no port between 0 and 65535");
  }
  Address address;
  address.host = std::string(host);
  address.port = static_cast<uint16_t>(port);
  return address;
}

Address AdvertisedAs(const Address& address, const std::string& host) {
  Address advertised = address;
  if (!host.empty() && !address.is_unix()) advertised.host = host;
  return advertised;
}

}  // namespace sluice
