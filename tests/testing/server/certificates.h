// Certificates for tests, signed by an authority that each test makes.

#ifndef SLUICE_TESTS_TESTING_SERVER_CERTIFICATES_H_
#define SLUICE_TESTS_TESTING_SERVER_CERTIFICATES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/security/certificates.h"
#include "common/security/credentials_source.h"
#include "common/security/role.h"

namespace sluice {

class TestAuthority {
 public:
  TestAuthority();

  // Credentials of a server, valid for loopback and for `hosts`.
  Credentials Server(const std::vector<std::string>& hosts = {}) const;
  // Credentials of one of several servers.
  Credentials ServerOfSeveral() const;
  // Credentials of a caller with these roles.
  Credentials Client(const std::vector<Role>& roles) const;
  // The same, but the certificate has expired.
  Credentials ExpiredClient(const std::vector<Role>& roles) const;

 private:
  static CertificateOrder OrderOfServer();
  Credentials Issue(const CertificateOrder& order) const;

  std::unique_ptr<CertificateAuthority> authority_;
};

// Writes them to files of mode 0600 in `folder`. Replaces files that exist.
TlsFiles WriteCredentials(const Credentials& credentials, const std::string& folder);

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_SERVER_CERTIFICATES_H_
