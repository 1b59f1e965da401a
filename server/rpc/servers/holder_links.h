// The sequencer's links to the holders of a job: the service Sequencer, which they call, and what
// is sent to and heard from them. sequencer.proto has the protocol.
//
// A link outlives its calls. While the connection to a holder is broken, commands are kept. They
// are few, because training waits for that holder; a link that keeps kMostKept of them is lost.

#ifndef SLUICE_SERVER_RPC_SERVERS_HOLDER_LINKS_H_
#define SLUICE_SERVER_RPC_SERVERS_HOLDER_LINKS_H_

#include <grpcpp/impl/service_type.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "server/holder/holder_link.h"
#include "server/rpc/servers/grpc_holder_link.h"
#include "server/state/found_files.h"

namespace sluice {

struct HolderLinksOptions {
  std::string job_id;
  uint32_t servers = 2;  // of the job, with the sequencer's own
  Incarnation incarnation;
  SessionId session_base;      // see ShardOptions
  ProcessNonce process_nonce;  // drawn for each incarnation of the sequencer
  // How long a holder whose connection broke may be away.
  absl::Duration lease = absl::InfiniteDuration();
  bool saves = false;     // whether the servers have directories for checkpoints
  bool journals = false;  // whether they also write journals
};

// Called for each holder that comes, with the files that it has found in its directory.
using HolderCameListener = std::function<void(uint32_t holder, const FoundFiles& found)>;

// Any thread may call any method.
class HolderLinks {
 public:
  // `clock` outlives it.
  HolderLinks(HolderLinksOptions options, const Clock& clock);

  // `report` gets the reports of each holder. `lost` is called once for each holder whose part of
  // the parameters is lost. The thread that calls `lost` may hold the locks under which commands
  // are sent, so `lost` must not take these locks. `came` may be null. Call Listen() before the
  // service is registered.
  void Listen(HolderReportListener report, HolderLossListener lost,
              HolderCameListener came = nullptr);

  // To the holders 1, 2, … Valid as long as this object.
  std::vector<HolderLink*> links() const;
  // In the same order.
  std::vector<HolderLinkState> states() const;
  // Of all servers, the sequencer first, with what is known here: their addresses, and how the
  // holders are connected and what they have told.
  std::vector<ServerStatus> Describe() const ABSL_LOCKS_EXCLUDED(mu_);

  // Where workers reach the sequencer; once, when it listens.
  void SetAddress(std::string address) ABSL_LOCKS_EXCLUDED(mu_);
  // Where workers reach each server, the sequencer first. UNAVAILABLE without a reason unless each
  // holder has come: "server 2 of 3 has not come yet".
  absl::StatusOr<std::vector<std::string>> Addresses() const ABSL_LOCKS_EXCLUDED(mu_);

  // Waits until each holder has come and `came` was called for it. Returns false if StopAwaiting()
  // was called before.
  bool AwaitAll() const ABSL_LOCKS_EXCLUDED(mu_);
  void StopAwaiting() ABSL_LOCKS_EXCLUDED(mu_);

  // Acknowledges what was heard, and ends leases that are over. Call it several times a second.
  void Tick();
  // Names a holder that has come and is not connected: "server 2 of 3, at host:7070, is away".
  // Empty: there is none.
  std::string Away() const;
  // Whether every holder that is connected has taken all commands.
  bool AllTaken() const;
  // Ends the calls, and refuses others, with `why`.
  void Close(const absl::Status& why);

  // For a call of Follow: the link of the holder that `hello` names, or the error.
  absl::StatusOr<GrpcHolderLink*> Find(const v1::HolderHello& hello) const;
  v1::SequencerHello Hello() const;
  // The holder that `hello` names has come. Call it before anything that follows `hello` is
  // handled.
  void NoteCame(const v1::HolderHello& hello) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const HolderLinksOptions options_;
  std::vector<std::unique_ptr<GrpcHolderLink>> links_;  // of holders 1, 2, …
  HolderCameListener came_;                             // or null
  mutable absl::Mutex mu_;
  std::set<uint32_t> have_come_ ABSL_GUARDED_BY(mu_);
  bool awaits_ ABSL_GUARDED_BY(mu_) = true;
  std::string address_ ABSL_GUARDED_BY(mu_);  // empty: it does not listen yet
};

// The service. `links` outlives it.
std::unique_ptr<grpc::Service> MakeGrpcSequencer(HolderLinks& links);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_SERVERS_HOLDER_LINKS_H_
