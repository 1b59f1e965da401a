// The commands that the leader of several servers sends to the replicas, and the reports that they
// send back, as plain values.
//
// The leader is server 0; each other server is a replica. The leader sends one log of commands to
// each replica, and does the same to the stripe of its own server by direct calls. All logs have
// the same commands in the same order, and a replica executes its log in that order. So whatever
// depends on the order is the same everywhere: a pull that is released gets the snapshot that is
// the latest at that place of the log, on every server.
//
//   OpenModel       once; before it comes at most BeginJournal, or EndJob
//   LoadCheckpoint  take the stripe's state from a checkpoint; then report LoadedReport. No worker
//                   joins before all replicas have reported
//   ReplayStep      the sum of the coming step is in the journal. StepOrders and PublishStep follow
//   BeginJournal    from now on write each step to the stripe's journal, and report JournalReport
//   OpenSession     a worker or an observer has joined: its calls may come
//   AdmitPush       a push may be sent: take its stream; then report HaveReport
//   DropPush        it does not count: end its stream, and forget its gradient
//   TakeParameters  it was an offer of initial parameters; they are the first snapshot
//   AddPush         it counts: add its gradient to the sum of the step
//   StepOrder       carry it out; then report StripeReport. The next command of a step is sent when
//                   all replicas have reported
//   PublishStep     after kMake or kCopy: what it made is the latest snapshot
//   ReleasePull     answer a pull
//   DropPull        the worker does not wait for it any more: forget it
//   EndSession      forget the streams and pushes of a session
//   TakeCheckpoint  copy the stripe's state; report SavedReport when its file is on the disk
//   KeepCheckpoints remove the stripe's files of all other checkpoints
//   SummarizeTensor report SummaryReport on the latest snapshot
//   EndJob          last: the replica's process ends
//
// A link (ReplicaLink) delivers each message once and in order, in both directions. If its
// connection breaks, it sends again what was not acknowledged, and ignores what comes twice
// (ordered_messages.h). So no command is executed twice, and none needs a meaning for that.
//
// What workers send is in no log: their streams may come to a replica before or after the command
// that concerns them. A replica answers at once what comes after its end (worker_calls.h): after a
// command on a push, the leader admits none of the session with a lower name. It sends commands
// only between a session's OpenSession and its EndSession. A call that breaks off at a replica
// needs no command. A replica keeps the snapshot of a released pull until the worker's call comes.
// If the worker's call to the leader broke off, or the worker asks again, that call may never come,
// so the leader sends DropPull.

#ifndef SLUICE_SERVER_REPLICA_REPLICA_COMMANDS_H_
#define SLUICE_SERVER_REPLICA_REPLICA_COMMANDS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "common/base/ids.h"
#include "common/protocol/optimizer_config.h"
#include "common/protocol/protocol_types.h"
#include "common/tensor/layout.h"
#include "common/tensor/shared_memory.h"
#include "server/aggregation/accumulator.h"
#include "server/aggregation/pending_push.h"
#include "server/aggregation/step_orders.h"
#include "server/snapshots/striped_tensor.h"
#include "server/state/checkpoint_source.h"
#include "server/state/incarnation_history.h"

namespace sluice {

// How a worker names a push to all servers, or an offer of parameters, which has the sequence 0.
// Each time it sends one it makes another attempt, with a higher number than all before it in the
// session, so that no push is put together from parts of two attempts.
struct PushName {
  SessionId session;
  Sequence sequence;
  uint32_t attempt = 0;

  friend bool operator<(const PushName& a, const PushName& b) {
    return std::tie(a.session, a.attempt, a.sequence) < std::tie(b.session, b.attempt, b.sequence);
  }
};

// How a worker names a pull to all servers: with a number from 1, which rises within a session.
struct PullName {
  SessionId session;
  uint64_t number = 0;

  friend bool operator<(const PullName& a, const PullName& b) {
    return std::tie(a.session, a.number) < std::tie(b.session, b.number);
  }
};

// ---- Commands: from the leader to all replicas ----

struct OpenModel {
  std::shared_ptr<const Layout> layout;  // of the whole vector
  OptimizerConfig optimizer;
};

struct OpenSession {
  SessionId session;
  SessionRole role = SessionRole::kWorker;
  absl::optional<SharedMemoryName> memory = absl::nullopt;  // of the worker's gradients
};

// The checkpoint from which the job continues. Its files are in the directories of the servers.
struct LoadCheckpoint {
  CheckpointSource source;
  // The incarnations after the checkpoint's. They tell which steps of older journals count.
  IncarnationBegins begins = {};
};

// Makes a step after the checkpoint again.
struct ReplayStep {
  Step step;
  Incarnation incarnation;  // that made it; each journal must have the step of that incarnation
};

struct BeginJournal {
  Incarnation incarnation;  // of the leader
};

struct AdmitPush {
  PushId push;  // by which later commands and reports name this attempt
  PushName name;
  bool measures_norm = false;  // whether HaveReport::norm is wanted
  bool begins_sum = false;     // it may arrive in the memory of the sum; see ServerStripe::Begin()
};

struct DropPush {
  PushId push;  // 0 if it was not admitted
  PushName name;
};

struct TakeParameters {
  PushId push;  // all servers have it
  Step step;    // the number of the first snapshot
};

struct AddPush {
  PushId push;  // all servers have it
  GradientWeight weight;
  bool last = false;  // StepOrders follow; see StripeExecutor::Keep()
};

struct PublishStep {};

struct ReleasePull {
  PullName pull;
  PullHeader header;  // of the latest step at this place of the log
};

struct DropPull {
  PullName pull;  // and all of the session with lower numbers
};

struct EndSession {
  SessionId session;
  std::vector<PushId> keep = {};  // that all servers have, and that may count; others are dropped
};

struct TakeCheckpoint {
  std::string job_id;
  Incarnation incarnation;
  Step step;  // the latest at this place of the log
};

// Names a checkpoint in a directory.
struct CheckpointKey {
  Incarnation incarnation;
  Step step;

  friend bool operator==(const CheckpointKey& a, const CheckpointKey& b) {
    return std::tie(a.incarnation, a.step) == std::tie(b.incarnation, b.step);
  }
};

struct KeepCheckpoints {
  std::vector<CheckpointKey> keep;  // that are whole
};

// Somebody looks at a tensor.
struct SummarizeTensor {
  uint64_t number = 0;  // from 1, and rising
  TensorQuery query;
};

// The job is over: the replica's process ends with that code.
struct EndJob {
  int exit_code = 0;
};

using ReplicaCommand =
    std::variant<OpenModel, LoadCheckpoint, ReplayStep, BeginJournal, OpenSession, AdmitPush,
                 DropPush, TakeParameters, AddPush, StepOrder, PublishStep, ReleasePull, DropPull,
                 EndSession, TakeCheckpoint, KeepCheckpoints, SummarizeTensor, EndJob>;

// ---- Reports: from a replica to the leader ----

// The replica has its part of a push, or refuses it. The push has arrived when all servers have
// their parts. It is refused when one refuses its part: the leader sends DropPush then, because the
// worker may stop before its streams have come to the others.
struct HaveReport {
  PushId push;
  absl::Status refused;         // the error found in the part; OK: the replica keeps the part
  absl::optional<double> norm;  // of the part's parameters, if it was asked for
  uint64_t bytes = 0;           // of the part, as float32
};

// LoadCheckpoint was carried out.
struct LoadedReport {
  absl::Status failed;  // why the stripe cannot be loaded; OK: it was loaded
  Step journaled;       // the last step that the stripe's journal can repeat; without one, the
                        // checkpoint's
};

// The stripe's file of a checkpoint is on the replica's disk. The checkpoint exists when the
// leader has written its own file, after all replicas have reported.
struct SavedReport {
  Step step;
  absl::Status failed;    // why it could not be saved, or OK
  uint64_t checksum = 0;  // the file's XXH3-64
};

// The state of the stripe's journal has changed.
struct JournalReport {
  Step durable;          // all steps up to this one are on the disk
  absl::Status stopped;  // why the journal cannot be written, for example a full disk; or OK
};

// The stripe's part of a tensor.
struct SummaryReport {
  uint64_t number = 0;  // SummarizeTensor's
  TensorPart part;
};

using ReplicaReport =
    std::variant<HaveReport, StripeReport, LoadedReport, SavedReport, JournalReport, SummaryReport>;

}  // namespace sluice

#endif  // SLUICE_SERVER_REPLICA_REPLICA_COMMANDS_H_
