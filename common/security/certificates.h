// Certificates and keys for mutual TLS, as PEM: made in memory for a launch, or checked when they
// come from elsewhere.
//
// The only code that uses OpenSSL's X.509 functions. It writes nothing to a file or a log.
// Functions may be called from any thread; an authority by one thread at a time.

#ifndef SLUICE_COMMON_SECURITY_CERTIFICATES_H_
#define SLUICE_COMMON_SECURITY_CERTIFICATES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace sluice {

// The certificate that one side of a connection shows, and the authority that it trusts.
struct Credentials {
  std::string certificate;  // its own, then the intermediate certificates, if any
  std::string key;          // secret, without a passphrase
  std::string authority;    // certificates of the authorities that may sign the other side's
};

// OK if there is an authority and a certificate that is valid at `now` and belongs to the key.
// Otherwise INVALID_ARGUMENT says which of the three is wrong, and why.
absl::Status CheckCredentials(const Credentials& credentials, absl::Time now);

// When a certificate is valid.
struct Validity {
  absl::Time begin;
  absl::Time end;
};

// A certificate to be made.
struct CertificateOrder {
  std::string name;                // shown to people
  std::vector<std::string> hosts;  // of a server: its host names and numeric addresses
  std::vector<std::string> uris;   // of a client: its roles, see role.h; a server may also be one
  Validity validity;
};

// Signs certificates. Its key (ECDSA, P-256) never leaves the object, and the destructor wipes it.
class CertificateAuthority {
 public:
  // Makes a new authority. INTERNAL if the system has no random numbers or no memory.
  static absl::StatusOr<std::unique_ptr<CertificateAuthority>> Create(const Validity& validity);
  ~CertificateAuthority();

  CertificateAuthority(const CertificateAuthority&) = delete;
  CertificateAuthority& operator=(const CertificateAuthority&) = delete;

  // Makes a new key and its certificate: for a server if the order names hosts, for a client if it
  // names roles or no hosts. The returned credentials trust certificates of this authority.
  absl::StatusOr<Credentials> Issue(const CertificateOrder& order) const;

 private:
  struct Parts;
  explicit CertificateAuthority(std::unique_ptr<Parts> parts);

  const std::unique_ptr<Parts> parts_;
};

}  // namespace sluice

#endif  // SLUICE_COMMON_SECURITY_CERTIFICATES_H_
