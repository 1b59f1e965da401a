#include "tools/doctor/certificate_checks.h"

#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/input_file.h"
#include "common/security/secret_file.h"

namespace sluice {
namespace {

constexpr absl::Duration kDay = absl::Hours(24);
constexpr absl::Duration kRenewBefore = absl::Hours(30 * 24);
constexpr size_t kShownHosts = 8;

std::string Days(absl::Duration time) {
  return absl::StrFormat("%.1f days", absl::FDivDuration(time, kDay));
}

std::string Date(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M UTC", time, absl::UTCTimeZone());
}

// The names come from the file, so they are escaped.
std::string Listed(const std::vector<std::string>& hosts) {
  std::vector<std::string> shown;
  for (size_t i = 0; i < hosts.size() && i < kShownHosts; ++i) {
    shown.push_back(absl::CEscape(hosts[i]));
  }
  const size_t more = hosts.size() - shown.size();
  return absl::StrCat(absl::StrJoin(shown, ", "),
                      more == 0 ? "" : absl::StrCat(" and ", more, " more"));
}

}  // namespace

Findings CheckCertificate(const std::string& file, absl::Time now) {
  const auto pem = ReadSmallFile(file, kMostSecretBytes);
  if (!pem.ok()) return {};
  const auto facts = FactsOf(*pem);
  if (!facts.ok()) return {};
  return {JudgeValidity(facts->validity, now), JudgePurpose(*facts)};
}

Finding JudgeValidity(const Validity& validity, absl::Time now) {
  constexpr char kSubject[] = "certificate's time";
  if (now < validity.begin) {
    return {Verdict::kWrong, kSubject,
            absl::StrCat("valid only from ", Date(validity.begin), " on, in ",
                         Days(validity.begin - now), "; set the clock, or make another")};
  }
  const absl::Duration left = validity.end - now;
  if (left < absl::ZeroDuration()) {
    return {Verdict::kWrong, kSubject,
            absl::StrCat("it expired on ", Date(validity.end), ", ", Days(-left),
                         " ago; renew it, or set the clock")};
  }
  const std::string found = absl::StrCat(Days(left), " left, until ", Date(validity.end));
  if (left >= kRenewBefore) return {Verdict::kOk, kSubject, found};
  return {Verdict::kWarning, kSubject, found + "; renew it before a long job"};
}

Finding JudgePurpose(const CertificateFacts& facts) {
  constexpr char kSubject[] = "certificate's purpose";
  std::vector<std::string> purposes;
  if (facts.may_serve && !facts.hosts.empty()) {
    purposes.push_back(absl::StrCat("a server at ", Listed(facts.hosts)));
  }
  if (facts.may_call && !facts.roles.empty()) {
    purposes.push_back(absl::StrCat("a caller with the role ", facts.roles.ToString()));
  }
  if (!purposes.empty()) {
    return {Verdict::kOk, kSubject, absl::StrCat("it is for ", absl::StrJoin(purposes, ", and "))};
  }
  return {Verdict::kWarning, kSubject,
          "it is neither for a server, which needs serverAuth and its host names, nor for a "
          "caller, which needs clientAuth and a role such as URI:sluice:worker; make another as "
          "server/rpc/access/README.md says"};
}

}  // namespace sluice
