// The call Gather: all processes of a launch exchange bytes, for what surrounds training, such as a
// mean of accuracies, or a choice that one of them makes for all.

#ifndef SLUICE_SERVER_RPC_GATHER_H_
#define SLUICE_SERVER_RPC_GATHER_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/ids.h"
#include "sluice/v1/parameter_server.pb.h"

namespace sluice {

// The exchanges of a launch. Any thread may call any method; callbacks run outside its lock.
class Gatherings {
 public:
  static constexpr uint64_t kMostBytes = 3 << 20;  // of all processes in one exchange
  static constexpr uint32_t kMostProcesses = 1 << 16;
  static constexpr size_t kMostExchanges = 16;  // under way

  // Gets what all have given, in their order.
  using Given = std::shared_ptr<const std::vector<std::string>>;
  using Done = std::function<void(const Given&)>;

  // Takes part in an exchange. Calls `done` once, perhaps at once, when all processes have; a call
  // of the same process for the same exchange replaces an earlier one, whose `done` is not called
  // any more. Returns an id for Cancel(). Errors are those of the call.
  absl::StatusOr<uint64_t> Add(const v1::GatherRequest& request, Done done)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Ends the wait. True: `done` will not be called. What the process has given stays.
  bool Cancel(uint64_t id) ABSL_LOCKS_EXCLUDED(mu_);

  // Who is missing in an exchange: "rank 2, rank 5 (at its exchange 7) of 8". Names four at most.
  std::string Missing(uint64_t number) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Member {
    uint64_t nonce = 0;
    uint64_t number = 0;  // of its latest exchange
  };
  struct Exchange {
    uint32_t size = 0;
    uint64_t bytes = 0;
    std::map<uint32_t, std::string> data;  // of each rank that has come
    std::map<uint32_t, uint64_t> waiting;  // the ids of those who wait
    Given given;                           // when all have come
  };

  absl::Status CheckMember(const v1::GatherRequest& request) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status Begin(const v1::GatherRequest& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  static absl::Status CheckFits(const v1::GatherRequest& request, const Exchange& exchange);
  std::vector<Done> Complete(uint64_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable absl::Mutex mu_;
  uint64_t last_id_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<uint32_t, Member> members_ ABSL_GUARDED_BY(mu_);      // by rank
  std::map<uint64_t, Exchange> exchanges_ ABSL_GUARDED_BY(mu_);  // by number
  std::map<uint64_t, Done> waiting_ ABSL_GUARDED_BY(mu_);        // by id
};

// `gatherings` outlives the call.
grpc::ServerUnaryReactor* ServeGather(const v1::GatherRequest& request, grpc::ByteBuffer* response,
                                      Gatherings& gatherings);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_GATHER_H_
