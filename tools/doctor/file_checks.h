// Checks of what flags name: credentials, a directory, and an address.

#ifndef SLUICE_TOOLS_DOCTOR_FILE_CHECKS_H_
#define SLUICE_TOOLS_DOCTOR_FILE_CHECKS_H_

#include <string>

#include "common/security/credentials_source.h"
#include "tools/doctor/finding.h"

namespace sluice {

// Each may be empty, and is then not checked.
struct NamedThings {
  TlsFiles tls;
  std::string token_file;
  std::string checkpoint_dir;
  std::string listen;
};

// Uses the functions with which a server reads and opens the same. Leaves nothing behind.
Findings CheckNamed(const NamedThings& things);

}  // namespace sluice

#endif  // SLUICE_TOOLS_DOCTOR_FILE_CHECKS_H_
