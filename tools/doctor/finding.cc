#include "tools/doctor/finding.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace sluice {

Finding FindingOf(absl::string_view subject, const absl::Status& status, absl::string_view ok,
                  Verdict verdict, absl::string_view advice) {
  if (status.ok()) return {Verdict::kOk, std::string(subject), std::string(ok)};
  return {verdict, std::string(subject), absl::StrCat(status.message(), "; ", advice)};
}

std::string LineOf(const Finding& finding) {
  const char* const verdict = finding.verdict == Verdict::kOk        ? "ok"
                              : finding.verdict == Verdict::kWarning ? "warning"
                                                                     : "wrong";
  return absl::StrFormat("%-8s %s: %s\n", verdict, finding.subject, finding.text);
}

}  // namespace sluice
