// Certificates for tests: an authority of their own, and what it signs.

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

  // For a server on this machine's loopback, and those hosts.
  Credentials Server(const std::vector<std::string>& hosts = {}) const;
  // For a caller with those roles.
  Credentials Client(const std::vector<Role>& roles) const;
  // The same, but no longer valid.
  Credentials ExpiredClient(const std::vector<Role>& roles) const;

 private:
  Credentials Issue(const CertificateOrder& order) const;

  std::unique_ptr<CertificateAuthority> authority_;
};

// Writes them to files of mode 0600 in `folder`, over those that are there.
TlsFiles WriteCredentials(const Credentials& credentials, const std::string& folder);

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_SERVER_CERTIFICATES_H_
