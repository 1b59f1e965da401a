#include "tools/ctl/commands/command.h"

#include <unistd.h>

#include <iostream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/error.h"

namespace sluice {

const char kExitCodes[] =
    "Exit codes: 0 done; 1 the server refused, or a file is damaged or cannot be read; 2 wrong "
    "command line; 3 no server can be reached; 4 not allowed: the token or the certificate's role "
    "does not permit the call.";

int ExitCodeOfCommand(const absl::Status& status) {
  constexpr int kRefused = 1;
  constexpr int kBadUsage = 2;
  constexpr int kNoServer = 3;
  constexpr int kNotAllowed = 4;
  if (status.ok()) return 0;
  if (absl::IsUnauthenticated(status) || absl::IsPermissionDenied(status)) return kNotAllowed;
  if (ReasonOf(status) != Reason::kNone) return kRefused;
  if (absl::IsInvalidArgument(status)) return kBadUsage;
  return absl::IsUnavailable(status) ? kNoServer : kRefused;
}

absl::Status WrongCommandLine(const absl::Status& status) {
  return absl::InvalidArgumentError(status.message());
}

absl::Status Confirm(bool assume_yes, const std::string& question) {
  if (assume_yes) return absl::OkStatus();
  if (isatty(STDIN_FILENO) == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(question, " There is no terminal to ask; give --yes to do it."));
  }
  std::cerr << question << " [y/N] " << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  absl::AsciiStrToLower(&answer);
  if (answer == "y" || answer == "yes") return absl::OkStatus();
  return absl::CancelledError("nothing was changed; answer y, or give --yes, to do it");
}

}  // namespace sluice
