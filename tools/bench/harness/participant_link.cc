#include "tools/bench/harness/participant_link.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace sluice::bench {

ParticipantLink::ParticipantLink(const std::string& name, int to, int from)
    : name_(name), to_(fdopen(to, "w")), from_(fdopen(from, "r")) {}

absl::StatusOr<std::string> ParticipantLink::AwaitReady() {
  const auto line = ReadLine();
  if (!line.ok()) return line.status();
  absl::string_view detail = *line;
  if (absl::ConsumePrefix(&detail, "ready ")) return std::string(detail);
  return Unexpected(*line, "\"ready\"");
}

absl::Status ParticipantLink::BeginRound() { return Write("round"); }

absl::StatusOr<double> ParticipantLink::EndRound() {
  const auto line = ReadLine();
  if (!line.ok()) return line.status();
  double seconds = 0;
  if (absl::SimpleAtod(*line, &seconds)) return seconds;
  return Unexpected(*line, "seconds");
}

absl::StatusOr<Usage> ParticipantLink::AskUsage() {
  const absl::Status asked = Write("usage");
  if (!asked.ok()) return asked;
  const auto line = ReadLine();
  if (!line.ok()) return line.status();
  const std::vector<std::string> words = absl::StrSplit(*line, ' ');
  Usage usage;
  if (words.size() == 2 && absl::SimpleAtod(words[0], &usage.cpu_seconds) &&
      absl::SimpleAtoi(words[1], &usage.peak_bytes)) {
    return usage;
  }
  return Unexpected(*line, "CPU-seconds and bytes");
}

absl::Status ParticipantLink::Write(absl::string_view line) {
  const std::string text = absl::StrCat(line, "\n");
  if (fputs(text.c_str(), to_.get()) >= 0 && fflush(to_.get()) == 0) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(name_, " no longer listens"));
}

absl::StatusOr<std::string> ParticipantLink::ReadLine() {
  char line[512];
  if (fgets(line, sizeof(line), from_.get()) != nullptr) {
    return std::string(absl::StripSuffix(line, "\n"));
  }
  return absl::AbortedError(absl::StrCat(name_, " ended before its time"));
}

absl::Status ParticipantLink::Unexpected(absl::string_view line, absl::string_view expected) const {
  return absl::InternalError(absl::StrCat(name_, " said \"", line, "\", expected ", expected));
}

}  // namespace sluice::bench
