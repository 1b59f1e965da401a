// What a check of this machine found.

#ifndef SLUICE_TOOLS_DOCTOR_FINDING_H_
#define SLUICE_TOOLS_DOCTOR_FINDING_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace sluice {

enum class Verdict { kOk, kWarning, kWrong };

struct Finding {
  Verdict verdict = Verdict::kOk;
  std::string subject;  // "memory"
  std::string text;     // what was found and, unless it is ok, what to do
};

using Findings = std::vector<Finding>;

// `ok` if the status is; otherwise `verdict` with the status's message, and then `advice`.
Finding FindingOf(absl::string_view subject, const absl::Status& status, absl::string_view ok,
                  Verdict verdict, absl::string_view advice);

// One line: "wrong    memory: …".
std::string LineOf(const Finding& finding);

}  // namespace sluice

#endif  // SLUICE_TOOLS_DOCTOR_FINDING_H_
