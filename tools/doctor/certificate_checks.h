// What the certificate of --tls-cert is for, and for how long.

#ifndef SLUICE_TOOLS_DOCTOR_CERTIFICATE_CHECKS_H_
#define SLUICE_TOOLS_DOCTOR_CERTIFICATE_CHECKS_H_

#include <string>

#include "absl/time/time.h"
#include "common/security/certificate_facts.h"
#include "tools/doctor/finding.h"

namespace sluice {

// Nothing if the file cannot be read or holds no certificate: that is another check's.
Findings CheckCertificate(const std::string& file, absl::Time now);

// A warning when fewer than 30 days are left.
Finding JudgeValidity(const Validity& validity, absl::Time now);

// A server's names, a caller's roles. A warning if it has neither.
Finding JudgePurpose(const CertificateFacts& facts);

}  // namespace sluice

#endif  // SLUICE_TOOLS_DOCTOR_CERTIFICATE_CHECKS_H_
