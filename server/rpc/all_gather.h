// The call AllGather: all processes of a launch exchange bytes, for what surrounds training,
// such as a mean of accuracies, or a choice that one of them makes for all.

#ifndef SLUICE_SERVER_RPC_ALL_GATHER_H_
#define SLUICE_SERVER_RPC_ALL_GATHER_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/ids.h"
#include "sluice/v1/parameter_server.pb.h"

namespace sluice {

// The exchanges of a launch: in each, every rank gives bytes and gets those of all (an all-gather).
// Any thread may call any method; callbacks run outside its lock.
class Gatherings {
 public:
  static constexpr uint64_t kMostBytes = 3 << 20;  // of all ranks in one exchange
  static constexpr uint32_t kMostProcesses = 1 << 16;
  static constexpr size_t kMostExchanges = 16;  // under way

  // The answer to all ranks, an encoded AllGatherResponse.
  using Given = std::shared_ptr<const grpc::ByteBuffer>;
  using Done = std::function<void(const absl::StatusOr<Given>&)>;

  // Takes part in an exchange. Calls `done` once, unless Cancel() comes first: perhaps before this
  // returns, when all ranks have given. An error says that a later call of the rank has taken this
  // one's place (UNAVAILABLE), or that a rank's process was started again (GATHER_LOST). Returns an
  // id for Cancel(), or BAD_ARGUMENT or GATHER_LOST; then `done` is not called.
  absl::StatusOr<uint64_t> Add(const v1::AllGatherRequest& request, Done done)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Ends the wait. True: `done` will not be called. What the rank has given stays, and counts.
  bool Cancel(uint64_t id) ABSL_LOCKS_EXCLUDED(mu_);

  // Who is missing in an exchange: "rank 2, rank 5 (at its exchange 7) of 8". Names four at most.
  std::string Missing(uint64_t number) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Member {
    uint64_t nonce = 0;
    uint64_t number = 0;  // of its latest exchange
  };
  struct Part {
    uint64_t nonce = 0;  // of the process that gave it
    uint64_t id = 0;     // of its call
    std::string data;    // empty when the exchange is complete
  };
  struct Exchange {
    uint32_t size = 0;               // ranks
    uint64_t bytes = 0;              // of all data
    std::map<uint32_t, Part> parts;  // by rank
    Given given;                     // null: not all have come
  };
  // Callbacks that are due, and what they get.
  using Due = std::vector<std::pair<Done, absl::StatusOr<Given>>>;

  absl::Status CheckMember(const v1::AllGatherRequest& request) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ForgetEarlier(const v1::AllGatherRequest& request, Due* due)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status Begin(const v1::AllGatherRequest& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  static absl::Status CheckFits(const v1::AllGatherRequest& request, const Exchange& exchange);
  bool IsAwaited(const Exchange& exchange) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Take(uint64_t id, const absl::StatusOr<Given>& result, Due* due)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Complete(uint64_t number, Due* due) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable absl::Mutex mu_;
  uint64_t last_id_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<uint32_t, Member> members_ ABSL_GUARDED_BY(mu_);      // by rank
  std::map<uint64_t, Exchange> exchanges_ ABSL_GUARDED_BY(mu_);  // by number
  std::map<uint64_t, Done> waiting_ ABSL_GUARDED_BY(mu_);        // by id
};

// `gatherings` outlives the call.
grpc::ServerUnaryReactor* ServeAllGather(const v1::AllGatherRequest& request,
                                         grpc::ByteBuffer* response, Gatherings& gatherings);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_ALL_GATHER_H_
