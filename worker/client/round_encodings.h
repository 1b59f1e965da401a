// The encodings of a worker's rounds: how its gradients are sent and its parameters pulled.

#ifndef SLUICE_WORKER_CLIENT_ROUND_ENCODINGS_H_
#define SLUICE_WORKER_CLIENT_ROUND_ENCODINGS_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/encoding/encoding_plan.h"
#include "common/protocol/protocol_types.h"
#include "common/tensor/shared_floats.h"
#include "worker/compression/auto_encodings.h"
#include "worker/compression/gradient_encoder.h"
#include "worker/connection/server_connection.h"

namespace sluice {

// Externally synchronized. Gradients are sent as they are if nothing else was chosen.
class RoundEncodings {
 public:
  // `clock` outlives this.
  RoundEncodings(GradientEncoding push, EncodingChoice pull, const Clock& clock)
      : push_(std::move(push)), pull_(std::move(pull)), clock_(clock) {}

  // Before a worker joins. Momentum correction takes the momentum from the request's optimizer.
  absl::Status Prepare(JoinRequest& request);
  // Takes the momentum from options that a program has changed, too. BAD_OPTIMIZER if it is another
  // one than at the join, or if the rows of tables would not follow.
  absl::Status Adapt(const JoinRequest& request, ChangedOptions::Groups* changed) const;
  // After it has joined. With another number of servers than before, what encodings have left over
  // is dropped. BAD_ARGUMENT if `auto` may choose what several servers do not take.
  absl::Status Fit(const JoinRequest& request, const Welcome& welcome);

  // Whether elements are sent and pulled as they are.
  bool plain() const { return encoder_ == nullptr && auto_ == nullptr; }
  // See AutoEncodings.
  bool holds_back() const { return auto_ != nullptr && auto_->holds_back(); }
  bool measures_pull() const { return auto_ != nullptr && auto_->measures_pull(); }

  // Begins push number `push`, of a gradient that was computed on the parameters `held`. Returns
  // what the push has to tell of an automatic choice.
  absl::optional<EncodingReport> Begin(Sequence push, const PullHeader& held,
                                       ServerConnection& connection);
  // The server may have lost what Begin() returned.
  void ReportAgain() {
    if (auto_ != nullptr) auto_->ReportAgain();
  }
  // Of a push of `elements` elements.
  GradientEncoder::Sent NothingSent(uint64_t elements) const;
  // Both send what `sent` lacks, and note it there. False if the push has ended. A part that is
  // sent early does not change until End().
  bool SendEarly(uint64_t offset, const SharedFloats& part, OutgoingPush& push,
                 GradientEncoder::Sent& sent);
  bool SendRest(const SharedFloats& gradient, OutgoingPush& push, GradientEncoder::Sent& sent);
  // What was measured of the round, for an automatic choice.
  void NotePush(const Transfer& transfer, absl::Span<const float> gradient) {
    if (auto_ != nullptr) auto_->EndPush(transfer, gradient);
  }
  void NotePull(const Transfer& transfer, absl::Span<const float> parameters) {
    if (auto_ != nullptr) auto_->EndPull(transfer, parameters);
  }
  // Ends the push: what was left over of a gradient that counted is sent with the next one.
  void End(bool counted) {
    if (encoder_ != nullptr) encoder_->End(counted);
  }

  // Sets the encoding of rows that are pushed: that of gradients if it sends each value.
  void Choose(RowGradients& rows) const;

 private:
  GradientEncoding push_;
  const EncodingChoice pull_;
  const Clock& clock_;
  uint32_t servers_ = 0;                      // that the next two are for; 0 before Fit()
  std::unique_ptr<GradientEncoder> encoder_;  // null if gradients are sent as they are
  std::unique_ptr<AutoEncodings> auto_;       // null if nothing is chosen
  Sequence begun_;                            // the latest push,
  PullHeader held_;                           // and what it was computed on
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CLIENT_ROUND_ENCODINGS_H_
