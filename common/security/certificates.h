// Certificates and keys for mutual TLS, as PEM: made in memory for a launch, or checked when they
// come from elsewhere.
//
// The one door to OpenSSL's X.509. Nothing here is written to a file or a log. May be called from
// any thread; an authority by one at a time.

#ifndef SLUICE_COMMON_SECURITY_CERTIFICATES_H_
#define SLUICE_COMMON_SECURITY_CERTIFICATES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace sluice {

// What one side of a connection shows and trusts.
struct Credentials {
  std::string certificate;  // its own, then those that lead to its authority, if any
  std::string key;          // secret, without a passphrase
  std::string authority;    // certificates of those who may sign the other side's
};

// OK if a certificate is in it which is valid at `now` and belongs to the key, and an authority is.
// Else INVALID_ARGUMENT says what is wrong with which of the three.
absl::Status CheckCredentials(const Credentials& credentials, absl::Time now);

// When a certificate is valid.
struct Validity {
  absl::Time begin;
  absl::Time end;
};

// A certificate to be made.
struct CertificateOrder {
  std::string name;                // for people
  std::vector<std::string> hosts;  // a server's: host names and numeric addresses it is reached at
  std::vector<std::string> uris;   // a client's: its roles, see common/security/role.h
  Validity validity;
};

// Signs certificates. Its key (ECDSA, P-256) never leaves it, and is wiped when it ends.
class CertificateAuthority {
 public:
  // A new one. INTERNAL if the system has no random numbers or no memory.
  static absl::StatusOr<std::unique_ptr<CertificateAuthority>> Create(const Validity& validity);
  ~CertificateAuthority();

  CertificateAuthority(const CertificateAuthority&) = delete;
  CertificateAuthority& operator=(const CertificateAuthority&) = delete;

  // A new key with a certificate: a server's if the order names hosts, else a client's, and good
  // for nothing else. Trusts this authority's certificates.
  absl::StatusOr<Credentials> Issue(const CertificateOrder& order) const;

 private:
  struct Parts;
  explicit CertificateAuthority(std::unique_ptr<Parts> parts);

  const std::unique_ptr<Parts> parts_;
};

}  // namespace sluice

#endif  // SLUICE_COMMON_SECURITY_CERTIFICATES_H_
