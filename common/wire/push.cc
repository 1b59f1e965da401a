#include "common/wire/push.h"

#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/protocol/attachment.h"
#include "common/wire/encoding.h"
#include "common/wire/field.h"
#include "common/wire/optimizer.h"
#include "common/wire/running_means.h"
#include "common/wire/words.h"

namespace sluice {
namespace {

constexpr Word<Disposition, v1::Disposition> kDispositions[] = {
    {Disposition::kAccepted, v1::ACCEPTED},          {Disposition::kApplied, v1::APPLIED},
    {Disposition::kStaleDropped, v1::STALE_DROPPED}, {Disposition::kSkipped, v1::SKIPPED},
    {Disposition::kPartTaken, v1::PART_TAKEN},       {Disposition::kDuplicate, v1::DUPLICATE}};

absl::StatusOr<Disposition> DispositionFromProto(absl::string_view field,
                                                 v1::Disposition disposition) {
  const Disposition* const known = ToOurs(kDispositions, disposition);
  if (known != nullptr) return *known;
  return BadField(field, absl::StrCat(static_cast<int>(disposition)),
                  "a known disposition; is the server newer than this worker?");
}

void PutAttachments(const Attachments& attachments, v1::PushHeader* header) {
  for (const Attachment& attachment : attachments) {
    v1::Attachment& message = *header->add_attachments();
    message.set_type(attachment.type);
    message.set_data(attachment.data);
  }
}

// Null if the message has none.
absl::StatusOr<std::shared_ptr<const Attachments>> ReadAttachments(const v1::PushHeader& header) {
  if (header.attachments().empty()) return nullptr;
  const auto attachments = std::make_shared<Attachments>();
  for (const v1::Attachment& message : header.attachments()) {
    attachments->push_back({message.type(), message.data()});
  }
  const absl::Status sound = CheckAttachments(*attachments);
  if (!sound.ok()) return sound;
  return std::shared_ptr<const Attachments>(attachments);
}

// Null if there are none.
absl::StatusOr<std::shared_ptr<const RunningMeans>> ReadShared(
    const RunningMeanMessages& messages) {
  if (messages.empty()) return nullptr;
  if (static_cast<size_t>(messages.size()) > kMostRunningMeans) {
    return BadField("running_means", absl::StrCat("a list of ", messages.size()),
                    absl::StrCat("at most ", kMostRunningMeans, "; join those that touch"));
  }
  auto means = ReadRunningMeans(messages);
  if (!means.ok()) return means.status();
  return std::make_shared<const RunningMeans>(*std::move(means));
}

// Of a header or of a summary.
template <typename Message>
absl::StatusOr<absl::optional<double>> ReadClipNorm(const Message& message) {
  if (!message.has_clip_norm()) return absl::optional<double>();
  const double norm = message.clip_norm();
  if (std::isfinite(norm) && norm > 0) return absl::make_optional(norm);
  return BadField("clip_norm", absl::StrCat(norm), "a finite number above 0");
}

}  // namespace

v1::PushHeader ToProto(const PushHeader& header) {
  v1::PushHeader message;
  message.set_session(header.session.value());
  message.set_sequence(header.sequence.value());
  message.set_step(header.step.value());
  message.set_incarnation(header.incarnation.value());
  message.set_samples(header.samples);
  message.set_attempt(header.attempt);
  message.set_row_bytes(header.row_bytes);
  if (header.loss.has_value()) message.set_loss(*header.loss);
  if (header.attachments != nullptr) PutAttachments(*header.attachments, &message);
  if (header.encodings.has_value()) *message.mutable_encodings() = ToProto(*header.encodings);
  if (header.running_means != nullptr) {
    PutRunningMeans(*header.running_means, message.mutable_running_means());
  }
  PutChanged(header.options, message.mutable_changed_options());
  if (header.clip_norm.has_value()) message.set_clip_norm(*header.clip_norm);
  return message;
}

absl::StatusOr<PushHeader> FromProto(const v1::PushHeader& message) {
  if (message.sequence() == 0) return BadField("sequence", "0", "a number from 1 on");
  if (message.samples() == 0) return BadField("samples", "0", "at least 1");
  PushHeader header;
  header.session = SessionId(message.session());
  header.sequence = Sequence(message.sequence());
  header.step = Step(message.step());
  header.incarnation = Incarnation(message.incarnation());
  header.samples = message.samples();
  header.attempt = message.attempt();
  header.row_bytes = message.row_bytes();
  if (message.has_loss()) header.loss = message.loss();
  if (message.has_encodings()) {
    auto encodings = FromProto(message.encodings());
    if (!encodings.ok()) return encodings.status();
    header.encodings = *std::move(encodings);
  }
  auto attachments = ReadAttachments(message);
  if (!attachments.ok()) return attachments.status();
  header.attachments = *std::move(attachments);
  auto means = ReadShared(message.running_means());
  if (!means.ok()) return means.status();
  header.running_means = *std::move(means);
  auto options = ReadChanged(message.changed_options());
  if (!options.ok()) return options.status();
  header.options = *std::move(options);
  const auto clip_norm = ReadClipNorm(message);
  if (!clip_norm.ok()) return clip_norm.status();
  header.clip_norm = *clip_norm;
  return header;
}

v1::PushSummary ToProto(const PushSummary& summary) {
  v1::PushSummary message;
  message.set_samples(summary.samples);
  if (summary.loss.has_value()) message.set_loss(*summary.loss);
  if (summary.running_means != nullptr) {
    PutRunningMeans(*summary.running_means, message.mutable_running_means());
  }
  PutChanged(summary.options, message.mutable_changed_options());
  if (summary.clip_norm.has_value()) message.set_clip_norm(*summary.clip_norm);
  return message;
}

absl::StatusOr<PushSummary> FromProto(const v1::PushSummary& message) {
  if (message.samples() == 0) return BadField("samples", "0", "at least 1");
  PushSummary summary;
  summary.samples = message.samples();
  if (message.has_loss()) summary.loss = message.loss();
  auto means = ReadShared(message.running_means());
  if (!means.ok()) return means.status();
  summary.running_means = *std::move(means);
  auto options = ReadChanged(message.changed_options());
  if (!options.ok()) return options.status();
  summary.options = *std::move(options);
  const auto clip_norm = ReadClipNorm(message);
  if (!clip_norm.ok()) return clip_norm.status();
  summary.clip_norm = *clip_norm;
  return summary;
}

v1::PushGradientsResponse ToProto(const PushOutcome& outcome) {
  v1::PushGradientsResponse message;
  message.set_disposition(ToTheirs(kDispositions, outcome.disposition));
  message.set_step(outcome.step.value());
  message.set_incarnation(outcome.incarnation.value());
  message.set_staleness(outcome.staleness);
  message.set_options_differ(outcome.options_differ);
  if (outcome.first_disposition.has_value()) {
    message.set_first_disposition(ToTheirs(kDispositions, *outcome.first_disposition));
  }
  return message;
}

absl::StatusOr<PushOutcome> FromProto(const v1::PushGradientsResponse& message) {
  PushOutcome outcome;
  const auto disposition = DispositionFromProto("disposition", message.disposition());
  if (!disposition.ok()) return disposition.status();
  outcome.disposition = *disposition;
  outcome.step = Step(message.step());
  outcome.incarnation = Incarnation(message.incarnation());
  outcome.staleness = message.staleness();
  outcome.options_differ = message.options_differ();
  if (outcome.disposition != Disposition::kDuplicate) return outcome;
  const auto first = DispositionFromProto("first_disposition", message.first_disposition());
  if (!first.ok()) return first.status();
  outcome.first_disposition = *first;
  return outcome;
}

}  // namespace sluice
