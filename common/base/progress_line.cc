#include "common/base/progress_line.h"

#include <glog/logging.h>
#include <unistd.h>

#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/time_text.h"

namespace sluice {
namespace {

constexpr absl::Duration kBetweenBars = absl::Milliseconds(200);
constexpr absl::Duration kBetweenLines = absl::Seconds(10);
constexpr int kBarWidth = 20;
constexpr char kClearLine[] = "\r\033[K";

}  // namespace

ProgressOutput ProgressOutput::OnStderr() {
  ProgressOutput output;
  if (isatty(STDERR_FILENO) != 0) {
    output.terminal = &std::cerr;
  } else {
    output.lines = [](const std::string& line) { std::cerr << line << "\n" << std::flush; };
  }
  return output;
}

ProgressOutput ProgressOutput::InLog() {
  ProgressOutput output;
  output.lines = [](const std::string& line) { LOG(INFO) << line; };
  return output;
}

ProgressLine::ProgressLine(std::string doing, uint64_t total, ProgressOutput output,
                           const Clock& clock)
    : doing_(std::move(doing)),
      total_(total),
      output_(std::move(output)),
      clock_(clock),
      began_(clock.Now()),
      said_(began_) {}

ProgressLine::~ProgressLine() {
  if (shown_) *output_.terminal << kClearLine << std::flush;
}

void ProgressLine::Reach(uint64_t done) {
  const bool terminal = output_.terminal != nullptr;
  const absl::Time now = clock_.Now();
  if (now - said_ < (terminal ? kBetweenBars : kBetweenLines)) return;
  said_ = now;
  const std::string left = absl::StrCat(Share(done), TimeLeft(done, now));
  if (terminal) {
    *output_.terminal << kClearLine << doing_ << " " << Bar(done) << " " << left << std::flush;
    shown_ = true;
  } else if (output_.lines != nullptr) {
    output_.lines(absl::StrCat(doing_, ": ", left));
  }
}

std::string ProgressLine::Share(uint64_t done) const {
  return absl::StrFormat(
      "%d %%", static_cast<int>(100 * static_cast<double>(done) / static_cast<double>(total_)));
}

// Supposes that the rest is as fast as what is done.
std::string ProgressLine::TimeLeft(uint64_t done, absl::Time now) const {
  if (done == 0) return "";
  const double rest = static_cast<double>(total_ - done) / static_cast<double>(done);
  return absl::StrCat(", ", WholeTimeText((now - began_) * rest), " left");
}

std::string ProgressLine::Bar(uint64_t done) const {
  const int filled =
      static_cast<int>(kBarWidth * static_cast<double>(done) / static_cast<double>(total_));
  return absl::StrCat("[", std::string(filled, '#'), std::string(kBarWidth - filled, '.'), "]");
}

}  // namespace sluice
