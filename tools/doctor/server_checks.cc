#include "tools/doctor/server_checks.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "common/base/error.h"
#include "common/base/file_descriptor.h"
#include "common/base/version.h"
#include "common/net/address.h"
#include "common/net/unix_socket.h"
#include "common/security/certificate_facts.h"
#include "common/security/secret_file.h"

namespace sluice {
namespace {

constexpr timeval kSocketTimeout = {5, 0};
constexpr absl::Duration kConnectTimeout = absl::Seconds(5);
constexpr absl::Duration kSameTime = absl::Seconds(5);

// A connection that has been made, with timeouts.
absl::StatusOr<FileDescriptor> ConnectTcp(const Address& address) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int resolved =
      getaddrinfo(address.host.c_str(), absl::StrCat(address.port).c_str(), &hints, &found);
  if (resolved != 0) {
    return absl::UnavailableError(absl::StrCat(address.host, ": ", gai_strerror(resolved)));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, freeaddrinfo);
  int error = ECONNREFUSED;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    FileDescriptor socket(::socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, 0));
    for (const int limit : {SO_SNDTIMEO, SO_RCVTIMEO}) {  // also of connect()
      setsockopt(socket.get(), SOL_SOCKET, limit, &kSocketTimeout, sizeof kSocketTimeout);
    }
    if (connect(socket.get(), one->ai_addr, one->ai_addrlen) == 0) return socket;
    error = errno;
  }
  return absl::UnavailableError(absl::StrCat(address.ToString(), ": ", strerror(error)));
}

absl::Status TryToConnect(const Address& address) {
  return address.is_unix() ? ConnectUnix(address.unix_path).status() : ConnectTcp(address).status();
}

// The certificate that a server shows; UNAVAILABLE if it speaks no TLS.
absl::StatusOr<std::string> CertificateOf(const Address& address) {
  if (address.is_unix()) return absl::UnavailableError("unix sockets have no TLS");
  const auto socket = ConnectTcp(address);
  if (!socket.ok()) return socket.status();
  return CertificateShownAt(socket->get());
}

std::string NamesIn(const std::string& certificate) {
  const auto facts = FactsOf(certificate);
  return facts.ok() && !facts->hosts.empty() ? Shown(absl::StrJoin(facts->hosts, ", ")) : "no host";
}

// Why no gRPC connection came about, though the port accepts connections.
std::string WhyNot(const NamedServer& server, const Address& address, const absl::Status& status) {
  const bool tls = !server.security.tls.certificate.empty();
  const auto shown = CertificateOf(address);
  if (!tls && shown.ok()) {
    return "the server speaks TLS, and no certificate was given; give --tls-cert, --tls-key and "
           "--tls-ca";
  }
  if (!tls) {
    return absl::StrCat("no server of Sluice answers at ", address.ToString(), " (",
                        status.message(), "); another program may have this port");
  }
  if (!shown.ok()) {
    return "the server speaks no TLS; leave out --tls-cert, --tls-key and --tls-ca, or start the "
           "server with its own";
  }
  if (!StandsFor(*shown, address.host)) {
    return absl::StrCat("the server's certificate is for ", NamesIn(*shown), ", not for ",
                        Shown(address.host), "; use a name that it has, or make another for ",
                        "the server");
  }
  return absl::StrCat("TLS fails (", status.message(),
                      "); does --tls-ca name the authority of the server's certificate, and the "
                      "server's --tls-ca that of this one, and are both clocks right?");
}

std::string WhyRefused(const NamedServer& server, bool sends_token, const absl::Status& status) {
  const std::string refused(status.message());
  if (ReasonOf(status) == Reason::kBadToken && !sends_token) {
    return absl::StrCat("the server asks for a token, ",
                        server.token_file.empty()
                            ? "and none was given; give --token-file with the server's"
                            : "which is not sent in plaintext through a network; give --tls-cert, "
                              "--tls-key and --tls-ca, or --insecure-on-network");
  }
  if (ReasonOf(status) == Reason::kBadToken) {
    return absl::StrCat("the server refuses the token in ", server.token_file,
                        "; it needs the one with which the server was started");
  }
  if (absl::IsPermissionDenied(status)) {
    return refused + "; to train or to watch, use a certificate with one of these roles";
  }
  return refused;
}

// Empty if the file cannot be read, which is another check's, or if it must not be sent.
std::string TokenFor(const NamedServer& server, const Address& address) {
  const bool safe = address.IsLocal() || server.security.insecure_on_network ||
                    !server.security.tls.certificate.empty();
  if (server.token_file.empty() || !safe) return "";
  return ReadSecretFile(server.token_file).value_or("");
}

// The numbers in "0.10.2", which can be compared; none for other texts.
std::vector<uint32_t> NumbersOf(absl::string_view version) {
  std::vector<uint32_t> numbers;
  for (const absl::string_view part : absl::StrSplit(version, '.')) {
    uint32_t number = 0;
    if (!absl::SimpleAtoi(part, &number)) return {};
    numbers.push_back(number);
  }
  return numbers;
}

std::string OlderSide(absl::string_view server, absl::string_view own) {
  const std::vector<uint32_t> theirs = NumbersOf(server);
  const std::vector<uint32_t> ours = NumbersOf(own);
  if (theirs.empty() || ours.empty()) return "the older side";
  return theirs < ours ? "the server" : "this machine";
}

Findings AskServer(const NamedServer& server, const Address& address,
                   const CredentialsSource& credentials) {
  const std::string token = TokenFor(server, address);
  const auto probe = GrpcProbe::Connect({server.address, token, credentials, kConnectTimeout});
  if (!probe.ok()) {
    return {{Verdict::kWrong, "server", WhyNot(server, address, probe.status())}};
  }
  const absl::Time sent = absl::Now();
  const auto answer = (*probe)->Ask();
  const absl::Duration half = (absl::Now() - sent) / 2;
  if (absl::IsUnavailable(answer.status())) {
    return {FindingOf("server", answer.status(), "", Verdict::kWrong,
                      credentials == nullptr
                          ? "is it a server of Sluice, and does it run?"
                          : "does the server's --tls-ca name the authority of this certificate?")};
  }
  if (absl::IsUnimplemented(answer.status())) {
    return {{Verdict::kWrong, "server",
             absl::StrCat(server.address, " answers, but it is no server of Sluice")}};
  }
  Findings findings = {{Verdict::kOk, "server",
                        absl::StrCat(server.address, " answers, ",
                                     credentials == nullptr ? "in plaintext" : "over TLS")}};
  const bool tells_nothing = ReasonOf(answer.status()) == Reason::kNotFirstServer;
  const absl::Status access =
      answer.ok() || tells_nothing ? (*probe)->TryAccess() : answer.status();
  if (!access.ok()) {
    findings.push_back({Verdict::kWrong, "access", WhyRefused(server, !token.empty(), access)});
  }
  if (tells_nothing) {
    findings.push_back({Verdict::kWarning, "version", std::string(answer.status().message())});
  }
  if (answer.ok()) {
    findings.push_back(JudgeVersion(*answer, kServedRevisions, kVersion));
    findings.push_back(JudgeClock(answer->time - (sent + half), half));
  }
  return findings;
}

}  // namespace

Findings CheckServer(const NamedServer& server) {
  const auto address = ParseAddress(server.address);
  const absl::Status reached = address.ok() ? TryToConnect(*address) : address.status();
  if (!reached.ok()) {
    return {FindingOf("server", reached, "", Verdict::kWrong,
                      "check the address, that the server runs, and firewalls")};
  }
  const auto credentials = CredentialsFrom(server.security);
  if (!credentials.ok()) {
    return {
        FindingOf("server", credentials.status(), "", Verdict::kWrong, "the server was not asked")};
  }
  return AskServer(server, *address, address->is_unix() ? CredentialsSource() : *credentials);
}

Finding JudgeVersion(const ProbedServer& server, const Revisions& own, absl::string_view version) {
  constexpr char kSubject[] = "version";
  if (server.version.empty()) {
    return {Verdict::kWarning, kSubject,
            absl::StrCat("the server does not tell it, so it is older than this machine's (Sluice ",
                         version, "); upgrade the server")};
  }
  const absl::Status fits = CheckServerRevision(own, server.revision, server.version);
  if (!fits.ok()) return {Verdict::kWrong, kSubject, std::string(fits.message())};
  const std::string found = absl::StrCat("the server runs Sluice ", Shown(server.version),
                                         " (revision ", server.revision, " of the protocol)");
  if (server.revision > own.newest) {
    return {Verdict::kWarning, kSubject,
            absl::StrCat(found, ", this machine ", version, " (revision ", own.newest,
                         "), which the server may refuse; upgrade this machine")};
  }
  if (server.version == version) {
    return {Verdict::kOk, kSubject, found + ", as this machine does"};
  }
  return {
      Verdict::kWarning, kSubject,
      absl::StrCat(found, ", this machine ", version, "; they understand each other, but upgrade ",
                   OlderSide(server.version, version))};
}

Finding JudgeClock(absl::Duration ahead, absl::Duration doubt) {
  constexpr char kSubject[] = "server's clock";
  const absl::Duration apart = absl::AbsDuration(ahead);
  if (apart <= kSameTime + doubt) {
    return {Verdict::kOk, kSubject,
            absl::StrCat("within ", absl::FormatDuration(kSameTime), " of this machine's")};
  }
  return {Verdict::kWarning, kSubject,
          absl::StrCat("it is ", absl::FormatDuration(absl::Trunc(apart, absl::Seconds(1))),
                       ahead > absl::ZeroDuration() ? " ahead of" : " behind",
                       " this machine's, as its start and the time since tell; set both clocks, by "
                       "which certificates are valid, and start the server again")};
}

}  // namespace sluice
