#include "worker/connection/failed_calls.h"

#include <utility>

namespace sluice {
namespace {

class Push final : public OutgoingPush {
 public:
  explicit Push(absl::Status why) : why_(std::move(why)) {}

  bool Send(uint64_t /*offset*/, const SharedFloats& /*part*/) override { return false; }
  bool SendEncoded(const EncodedChunk& /*chunk*/, uint64_t /*taken*/) override { return false; }
  bool SendEach(absl::FunctionRef<bool(uint32_t, OutgoingPush&)> /*send*/) override {
    return false;
  }
  absl::StatusOr<PushOutcome> Finish(const PushSummary& /*summary*/) override { return why_; }
  void Cancel() override {}
  Transfer transfer() const override { return {}; }

 private:
  const absl::Status why_;
};

class Pull final : public PendingPull {
 public:
  explicit Pull(absl::Status why) : why_(std::move(why)) {}

  absl::StatusOr<PullHeader> Read(const StripeSpan<float>& /*parameters*/) override { return why_; }
  void Cancel() override {}
  bool wrote() const override { return false; }
  Transfer transfer() const override { return {}; }

 private:
  const absl::Status why_;
};

class Offer final : public PendingOffer {
 public:
  explicit Offer(absl::Status why) : why_(std::move(why)) {}

  absl::StatusOr<InitializeOutcome> Send(const StripeSpan<const float>& /*parameters*/) override {
    return why_;
  }
  void Cancel() override {}

 private:
  const absl::Status why_;
};

}  // namespace

std::unique_ptr<OutgoingPush> FailedPush(const absl::Status& why) {
  return std::make_unique<Push>(why);
}

std::unique_ptr<PendingPull> FailedPull(const absl::Status& why) {
  return std::make_unique<Pull>(why);
}

std::unique_ptr<PendingOffer> FailedOffer(const absl::Status& why) {
  return std::make_unique<Offer>(why);
}

}  // namespace sluice
