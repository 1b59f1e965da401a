#include "worker/compression/auto_encodings.h"

#include <glog/logging.h>

#include "absl/strings/str_format.h"
#include "common/base/error.h"

namespace sluice {
namespace {

std::unique_ptr<AutoEncoding> Direction(const Layout& layout, const EncodingChoice& choice,
                                        Pipeline pipeline, bool feedback,
                                        const TransformRegistry& transforms, uint32_t servers,
                                        const Clock& clock) {
  if (!choice.automatic()) return nullptr;
  return std::make_unique<AutoEncoding>(layout, choice, pipeline, feedback, transforms, servers,
                                        clock);
}

ChosenEncoding ChosenOf(const AutoEncoding* direction) {
  return direction == nullptr ? ChosenEncoding() : direction->chosen();
}

// The measured numbers of an encoding, for the log; empty for plain values.
std::string NumbersOf(const ChosenEncoding& chosen) {
  if (chosen.encode_bytes_per_second == 0) return "";
  return absl::StrFormat("; 1/%.3g of the bytes, encoded at %.4g and decoded at %.4g MB/s",
                         chosen.ratio, chosen.encode_bytes_per_second / 1e6,
                         chosen.decode_bytes_per_second / 1e6);
}

}  // namespace

AutoEncodings::AutoEncodings(const Layout& layout, const GradientEncoding& push,
                             const EncodingChoice& pull, const std::string& worker,
                             uint32_t servers, const Clock& clock)
    : worker_(Shown(worker)),
      push_(Direction(layout, push.choice, Pipeline::kThroughout, push.error_feedback,
                      push.transforms, servers, clock)),
      pull_(Direction(layout, pull, Pipeline::kAfterEncoding, true, push.transforms, servers,
                      clock)) {}

void AutoEncodings::BeginRound(GradientEncoder* encoder, ServerConnection& connection) {
  // The link can be measured only after the number of connections is settled.
  active_ = !connection.stays_on_machine() && !connection.measures_push();
  if (push_ != nullptr) {
    encoder->Use(active_ ? push_->encoding() : Encoding(), push_->hardly_shrinks());
  }
  if (pull_ != nullptr) connection.UsePullEncoding(active_ ? pull_->encoding() : Encoding());
}

void AutoEncodings::EndPush(const Transfer& transfer, absl::Span<const float> gradient) {
  if (active_ && push_ != nullptr) EndRound("pushes gradients", *push_, transfer, gradient);
}

void AutoEncodings::EndPull(const Transfer& transfer, absl::Span<const float> parameters) {
  if (active_ && pull_ != nullptr) EndRound("pulls parameters", *pull_, transfer, parameters);
}

void AutoEncodings::EndRound(const char* what, AutoEncoding& direction, const Transfer& transfer,
                             absl::Span<const float> values) {
  const std::string before = direction.chosen().encoding;
  const bool measured = direction.measures_link();
  direction.EndRound(transfer, values);
  if (!measured || direction.measures_link()) return;
  ReportAgain();
  const ChosenEncoding& now = direction.chosen();
  if (now.encoding == before) return;
  LOG(INFO) << absl::StrFormat("%s %s as %s from now on: its link carries %.4g MB/s%s", worker_,
                               what, now.encoding, now.link_bytes_per_second / 1e6, NumbersOf(now));
}

absl::optional<EncodingReport> AutoEncodings::TakeReport() {
  absl::optional<EncodingReport> report;
  report.swap(report_);
  return report;
}

void AutoEncodings::ReportAgain() {
  const EncodingReport report = {ChosenOf(push_.get()), ChosenOf(pull_.get())};
  if (!report.push.encoding.empty() || !report.pull.encoding.empty()) report_ = report;
}

}  // namespace sluice
