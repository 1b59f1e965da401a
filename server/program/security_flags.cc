#include "server/program/security_flags.h"

#include <glog/logging.h>

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"

namespace sluice {
namespace {

bool NamesFiles(const TlsFiles& files) {
  return !files.certificate.empty() || !files.key.empty() || !files.authority.empty();
}

bool NamesAll(const TlsFiles& files) {
  return !files.certificate.empty() && !files.key.empty() && !files.authority.empty();
}

absl::Status CheckPlaintext(const SecurityFlags& flags, const Address& address) {
  if (address.IsLocal()) return absl::OkStatus();
  if (!flags.insecure_on_network) {
    return absl::InvalidArgumentError(absl::StrCat(
        "in plaintext at ", address.ToString(),
        " the network could read and change all that is sent, a token too; give --tls-cert, "
        "--tls-key and --tls-ca, or an address on loopback, or a unix socket, or, where everybody "
        "on the network is trusted, --insecure-on-network"));
  }
  LOG(WARNING) << "plaintext at " << address.ToString()
               << ": the network can read and change all that is sent, a token too; "
                  "--insecure-on-network allows it";
  return absl::OkStatus();
}

}  // namespace

void AddSecurityFlags(CLI::App& group, SecurityFlags& flags) {
  group.add_option("--tls-cert", flags.tls.certificate,
                   "PEM file with this process's certificate, for mutual TLS; it, the key and the "
                   "authority may be replaced at any time");
  group.add_option(
      "--tls-key", flags.tls.key,
      "PEM file with the certificate's key, which other users must not be able to read");
  group.add_option("--tls-ca", flags.tls.authority,
                   "PEM file with the authorities that sign the other side's certificates");
  group.add_flag("--insecure", flags.insecure,
                 "plaintext also under mpirun, where TCP uses TLS by default; on loopback and unix "
                 "sockets only");
  group.add_flag(
      "--insecure-on-network", flags.insecure_on_network,
      "allow plaintext on network addresses: anybody on the network can read and change all");
}

bool ChoosesSecurity(const SecurityFlags& flags) {
  return NamesFiles(flags.tls) || flags.insecure || flags.insecure_on_network;
}

absl::StatusOr<CredentialsSource> CredentialsFrom(const SecurityFlags& flags) {
  if (!NamesFiles(flags.tls)) return CredentialsSource();
  if (!NamesAll(flags.tls)) {
    return absl::InvalidArgumentError(
        "some of --tls-cert, --tls-key and --tls-ca are missing; give all three for TLS");
  }
  if (flags.insecure || flags.insecure_on_network) {
    return absl::InvalidArgumentError(
        "--tls-cert asks for TLS, and --insecure for plaintext; give one of them");
  }
  return SourceOf(flags.tls);
}

absl::StatusOr<CredentialsSource> CredentialsAt(const SecurityFlags& flags,
                                                const Address& address) {
  auto credentials = CredentialsFrom(flags);
  if (!credentials.ok()) return credentials;
  if (*credentials == nullptr) {
    const absl::Status allowed = CheckPlaintext(flags, address);
    if (!allowed.ok()) return allowed;
  } else if (address.is_unix()) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no TLS on ", address.ToString(),
                     ", which file permissions guard; leave --tls-cert, --tls-key and --tls-ca "
                     "out, or give an address of TCP"));
  }
  return credentials;
}

}  // namespace sluice
