#include "worker/torch/run_worker.h"

#include "common/launch/failure.h"
#include "worker/torch/guarded.h"

namespace sluice {

int RunWorker(absl::string_view program, const std::function<void()>& train) {
  const auto trained = Guarded([&train] {
    train();
    return true;
  });
  return trained.ok() ? 0 : ReportFailure(program, trained.status());
}

}  // namespace sluice
