#include "common/launch/failure.h"

#include <iostream>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "common/base/command_line.h"
#include "common/base/error.h"
#include "common/launch/mpi_bootstrap.h"
#include "common/launch/outlive_server.h"
#include "common/launch/supervisor.h"

namespace sluice {
namespace {

constexpr int kFailed = 1;
constexpr int kBadUsage = 2;
constexpr int kNoServer = 3;
constexpr int kDiverged = 7;  // as the server
// Payloads of a status.
constexpr char kForAllRanks[] = "sluice/said-for-all-ranks";
constexpr char kByAnotherRank[] = "sluice/said-by-another-rank";

// A last line about what mpirun tells at length when a rank ends with a code; empty if this rank
// speaks for itself only.
std::string Explanation(absl::string_view program, const absl::Status& why) {
  if (!why.GetPayload(kForAllRanks).has_value()) return "";
  return absl::StrCat(program,
                      ": the job ends for this reason; what mpirun reports below, if anything, "
                      "has no other cause\n");
}

}  // namespace

absl::Status ShareFailure(const absl::Status& why) {
  if (!LaunchedByMpi() || SupervisorSocket::IsInherited()) return why;
  const auto told = MpiBootstrap([&why](const MpiWorld&) { return why; },
                                 [&why](const MpiWorld&) { return why; });
  return told.status();
}

absl::Status SaidForAllRanks(absl::Status why) {
  why.SetPayload(kForAllRanks, absl::Cord());
  return why;
}

absl::Status SaidByRank(int rank, const absl::Status& why) {
  absl::Status status(why.code(), absl::StrCat("rank ", rank, ": ", why.message()));
  status.SetPayload(kByAnotherRank, absl::Cord());
  return status;
}

bool IsSaidByAnotherRank(const absl::Status& why) {
  if (ReasonOf(why) == Reason::kDiverged && OutlivesServer()) return true;
  return why.GetPayload(kByAnotherRank).has_value();
}

int ExitCodeOf(const absl::Status& why) {
  if (why.ok()) return 0;
  if (ReasonOf(why) == Reason::kDiverged) return kDiverged;
  if (absl::IsInvalidArgument(why)) return kBadUsage;
  return absl::IsUnavailable(why) ? kNoServer : kFailed;
}

int ReportFailure(absl::string_view program, const absl::Status& why) {
  return ReportFailure(program, why, ExitCodeOf(why));
}

int ReportFailure(absl::string_view program, const absl::Status& why, int code) {
  if (IsSaidByAnotherRank(why)) return 0;
  if (WasToldToStop()) return code;
  const std::string name = CalledAs(program);
  std::cerr << absl::StrCat(name, ": ", NameVariables(std::string(why.message())), "\n",
                            Explanation(name, why))
            << std::flush;
  return code;
}

absl::optional<int> ExitCodeOfLaunchedUsage(CLI::App& app, int argc, const char* const* argv) {
  try {
    ParseArguments(app, argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool wrong = error.get_exit_code() != 0;
    const absl::Status why = ShareFailure(wrong ? absl::InvalidArgumentError(error.what())
                                                : absl::CancelledError("--help"));
    if (IsSaidByAnotherRank(why)) return 0;
    app.exit(error);
    if (!wrong) return 0;
    std::cerr << Explanation(app.get_name(), why) << std::flush;
    return kBadUsage;
  }
  return absl::nullopt;
}

}  // namespace sluice
