#include "tools/evaluate/server_source.h"

#include <glog/logging.h>

#include <string>
#include <utility>

#include "common/base/error.h"
#include "worker/client/parameter_follower.h"
#include "worker/worker_context.h"

namespace sluice {
namespace {

class ServerSource final : public ParameterSource {
 public:
  ServerSource(std::string address, uint64_t every, std::unique_ptr<ParameterFollower> follower)
      : address_(std::move(address)), every_(every), follower_(std::move(follower)) {}

  absl::StatusOr<absl::optional<ParametersId>> Next(Evaluator& model) override {
    const auto next = follower_->Next(every_, model.values(), model.wanted_rows(), model.rows());
    if (!next.ok()) return next.status();
    if (!next->has_value()) return absl::optional<ParametersId>();
    if (std::exchange(constants_pulled_, follower_->constants_pulled()) != constants_pulled_) {
      model.TakeConstants();
    }
    return absl::make_optional(ParametersId{address_, (*next)->incarnation, (*next)->step});
  }

  // People who look at the job see it. That it fails stops no evaluation.
  void Report(const TestResult& result) override {
    if (!reports_) return;
    const absl::Status reported = follower_->Report(ResultsOf(result));
    reports_ = ReasonOf(reported) != Reason::kWrongRole;
    if (reported.ok()) return;
    LOG(WARNING) << "the server does not show this evaluation: " << reported.message();
  }

 private:
  const std::string address_;
  const uint64_t every_;
  const std::unique_ptr<ParameterFollower> follower_;
  uint64_t constants_pulled_ = 0;
  bool reports_ = true;  // until the server says that this program may not
};

}  // namespace

absl::StatusOr<std::unique_ptr<ParameterSource>> MakeServerSource(const Job& job, uint64_t every,
                                                                  absl::Duration patience,
                                                                  const Evaluator& model) {
  auto connection = job.context().Connect();
  if (absl::IsUnavailable(connection.status())) {
    return absl::DeadlineExceededError(connection.status().message());
  }
  if (!connection.ok()) return connection.status();
  JoinRequest request = job.context().Identity(SessionRole::kObserver);
  request.layout = model.layout();
  request.memory = model.memory();
  auto follower =
      std::make_unique<ParameterFollower>(*std::move(connection), std::move(request), patience);
  const absl::Status fits = follower->KeepConstants(model.constants());
  if (!fits.ok()) return fits;
  return std::unique_ptr<ParameterSource>(
      std::make_unique<ServerSource>(job.context().ticket().address, every, std::move(follower)));
}

}  // namespace sluice
