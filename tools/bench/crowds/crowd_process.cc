#include "tools/bench/crowds/crowd_process.h"

#include <signal.h>
#include <stdlib.h>

#include <cerrno>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/optional.h"
#include "tools/bench/harness/pipe.h"

namespace sluice::bench {
namespace {

constexpr size_t kQuoted = 200;  // characters of an answer that an error repeats

// Nothing if there is something else in it.
absl::optional<std::vector<double>> NumbersIn(absl::string_view line) {
  std::vector<double> numbers;
  for (const absl::string_view word : absl::StrSplit(line, ' ', absl::SkipEmpty())) {
    if (!absl::SimpleAtod(word, &numbers.emplace_back())) return absl::nullopt;
  }
  return numbers;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CrowdProcess>> CrowdProcess::Start(
    const std::string& name, const std::vector<std::string>& argv) {
  Pipe input, output;
  if (!input.open() || !output.open()) return absl::ErrnoToStatus(errno, "cannot make a pipe");
  auto child = Child::Start(name, argv, {input.read_end(), output.write_end()});
  if (!child.ok()) return child.status();
  return std::unique_ptr<CrowdProcess>(new CrowdProcess(name, *std::move(child),
                                                        File(fdopen(input.TakeWriteEnd(), "w")),
                                                        File(fdopen(output.TakeReadEnd(), "r"))));
}

absl::Status CrowdProcess::Tell(absl::string_view command) {
  const std::string line = absl::StrCat(command, "\n");
  if (fputs(line.c_str(), to_.get()) >= 0 && fflush(to_.get()) == 0) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(name_, " no longer listens"));
}

absl::StatusOr<std::vector<double>> CrowdProcess::Answer(size_t least) {
  char* text = nullptr;
  size_t capacity = 0;
  const ssize_t length = getline(&text, &capacity, from_.get());
  const std::string line(text, length > 0 ? length - 1 : 0);
  free(text);
  if (length <= 0) return absl::AbortedError(absl::StrCat(name_, " ended before its time"));
  auto numbers = NumbersIn(line);
  if (numbers.has_value() && numbers->size() >= least) return *std::move(numbers);
  return absl::InternalError(absl::StrCat(name_, " said \"", line.substr(0, kQuoted),
                                          "\", expected at least ", least, " numbers"));
}

absl::Status CrowdProcess::End() {
  to_.reset();
  return child_->Wait();
}

void CrowdProcess::Kill() { kill(child_->pid(), SIGKILL); }

}  // namespace sluice::bench
