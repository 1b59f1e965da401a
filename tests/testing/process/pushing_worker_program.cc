// A worker without a model. Its parameters, 4 MiB unless told otherwise, start at 0, every element
// of its gradients is --gradient, and the optimizer is SGD with learning rate 1, so that without
// momentum the parameters are exactly minus the sum of the steps' reduced gradients. On request it
// stops on the way, there to be killed, or reports losses that rise. With --rows its model has a
// table beside, of which each push touches so many rows, which follow from the step and the
// gradient. At its end it says what it holds, a checksum of all rows, how many of its pushes
// counted, as it was told, and how much memory it needed.
//
// With --evaluate it observes the end of training, waits for SIGTERM, and reports a result.
//
//   pushing_worker_program --steps=N --gradient=G [--rows=R] [--evaluate]
//   [--stop-at-step=S [--in-push] [--die | --exit=CODE]] [--bad-from-step=S [--bad-above-rate=R]]
//   and a job's flags, of which --push-encoding holds for whole pushes, not for the half one of
//   --in-push

#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <functional>
#include <iostream>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/encoding/checksum.h"
#include "common/launch/failure.h"
#include "common/tensor/shared_memory.h"
#include "common/tensor/tensor_chunk.h"
#include "common/wire/messages.h"
#include "common/wire/status.h"
#include "sluice/v1/inspector.grpc.pb.h"
#include "sluice/v1/parameter_server.grpc.pb.h"
#include "tests/testing/quantile.h"
#include "tests/testing/vectors.h"
#include "worker/client/parameter_client.h"
#include "worker/job.h"
#include "worker/job_flags.h"
#include "worker/worker_context.h"

namespace sluice {
namespace {

constexpr uint64_t kChunks = 4;  // in one push, unless told otherwise
constexpr std::chrono::seconds kPatience(120);
constexpr uint32_t kRowWidth = 4;
constexpr uint64_t kRowIds = 1009;  // of the table

struct Flags {
  JobFlags job;
  uint64_t steps = 0;
  float gradient = 0;
  uint32_t elements = kChunks * kChunkElements;
  double momentum = 0;
  uint64_t rows = 0;
  double batch_time = 0;    // seconds
  double report_every = 0;  // seconds; 0: never
  bool leave_on_sigterm = false;
  bool join = true;
  bool evaluate = false;
  int64_t stop_at_step = -1;
  bool in_push = false;
  bool die = false;
  absl::optional<int> exit_code;
  int64_t bad_from_step = -1;
  double bad_above_rate = 0;
};

// Blocks until `condition` holds for the server's state.
absl::Status Await(v1::Inspector::Stub& inspector,
                   const std::function<bool(const v1::ServerState&)>& condition) {
  const auto deadline = std::chrono::system_clock::now() + kPatience;
  v1::ServerState state;
  do {
    grpc::ClientContext context;
    context.set_deadline(deadline);
    const grpc::Status status = inspector.GetServerState(&context, {}, &state);
    if (!status.ok()) return FromGrpcStatus(status);
  } while (!condition(state));
  return absl::OkStatus();
}

// Half of a push, which stays under way as long as the object.
class HalfPush {
 public:
  HalfPush(v1::ParameterServer::Stub& server, const JobTicket& ticket) {
    context_.AddMetadata("authorization", absl::StrCat("Bearer ", ticket.token));
    writer_ = server.PushGradients(&context_, &response_);
  }

  ~HalfPush() {
    context_.TryCancel();
    writer_->Finish();
  }

  bool Send(const PushHeader& header, absl::Span<const float> gradient) {
    v1::PushGradientsRequest message;
    *message.mutable_header() = ToProto(header);
    bool ok = Write(message);
    for (uint64_t chunk = 0; ok && chunk < kChunks / 2; ++chunk) {
      const uint64_t offset = chunk * kChunkElements;
      const absl::Span<const float> part = gradient.subspan(offset, kChunkElements);
      message.mutable_chunk()->set_offset(offset);
      message.mutable_chunk()->set_payload(part.data(), part.size() * sizeof(float));
      ok = Write(message);
    }
    return ok;
  }

 private:
  bool Write(const v1::PushGradientsRequest& message) {
    return writer_->Write(message, grpc::WriteOptions().set_write_through());
  }

  grpc::ClientContext context_;
  v1::PushGradientsResponse response_;
  std::unique_ptr<grpc::ClientWriter<v1::PushGradientsRequest>> writer_;
};

// Ends the process by SIGKILL: its own, or one from outside.
[[noreturn]] void AwaitDeath(const Flags& flags, Step step) {
  std::cout << absl::StrCat("stopped at step ", step.value(), "\n") << std::flush;
  if (flags.die) raise(SIGKILL);
  if (flags.exit_code.has_value()) exit(*flags.exit_code);
  for (;;) pause();
}

// Stops when all the others have contributed to the step, so that it waits for this worker alone.
absl::Status Stop(const Flags& flags, const JobTicket& ticket, const ParameterClient& client,
                  absl::Span<const float> gradient) {
  const auto channel = grpc::CreateChannel(ticket.address, grpc::InsecureChannelCredentials());
  const auto inspector = v1::Inspector::NewStub(channel);
  const absl::Status alone = Await(*inspector, [&](const v1::ServerState& state) {
    return state.step() == client.step().value() &&
           state.current().accumulated() + 1 == state.current().required();
  });
  if (!alone.ok()) return alone;
  if (!flags.in_push) AwaitDeath(flags, client.step());
  PushHeader header;
  header.session = client.welcome().session;
  header.sequence = Sequence(client.step().value() + 1);  // one push for each step so far
  header.step = client.step();
  header.incarnation = client.welcome().incarnation;
  const auto server = v1::ParameterServer::NewStub(channel);
  HalfPush push(*server, ticket);
  if (!push.Send(header, gradient)) return absl::UnavailableError("half of a push was not taken");
  const absl::Status begun = Await(
      *inspector, [](const v1::ServerState& state) { return state.pushes().in_progress() == 1; });
  if (!begun.ok()) return begun;
  AwaitDeath(flags, client.step());
}

JoinRequest MakeJoinRequest(const Flags& flags, const Job& job) {
  JoinRequest request = job.context().Identity(SessionRole::kWorker);
  request.layout = ParametersOnly(flags.elements);
  SgdOptions sgd;
  sgd.learning_rate = 1;
  sgd.momentum = flags.momentum;
  request.optimizer.options = sgd;
  if (flags.rows == 0) return request;
  TableSpec table;
  table.name = "rows";
  table.width = kRowWidth;
  table.initializer = {RowInitializerKind::kUniform, 1, 3};
  table.evict_after = 20;
  request.layout = *Layout::Create(request.layout.ranges(), {table});
  request.optimizer.tables = {{"rows", AdagradOptions()}};
  return request;
}

// The rows that a step touches. Another worker, which has another gradient, touches others.
RowGradients RowsOf(const Flags& flags, Step step) {
  std::set<RowId> ids;
  for (uint64_t i = 0; i < flags.rows; ++i) {
    ids.insert(MixId(step.value() * 1000 + i) % kRowIds * static_cast<uint64_t>(flags.gradient) %
               kRowIds);
  }
  const RowIds rows = {0, {ids.begin(), ids.end()}};
  return {{rows, Share(std::vector<float>(ids.size() * kRowWidth, flags.gradient))}};
}

absl::Status SayRows(ParameterClient& client) {
  RowIds all = {0, std::vector<RowId>(kRowIds)};
  std::iota(all.ids.begin(), all.ids.end(), 0);
  std::vector<float> rows(kRowIds * kRowWidth);
  const absl::Status pulled = client.PullRows({all}, absl::MakeSpan(rows));
  if (!pulled.ok()) return pulled;
  std::cout << absl::StrFormat("checksum of all rows: %016x\n", Checksum(BytesOf({rows})));
  return absl::OkStatus();
}

sigset_t LeaveSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  return signals;
}

// Call it before other threads start: they inherit the mask, and the signal stays pending until the
// program checks for it.
void HoldBackSigterm() {
  const sigset_t signals = LeaveSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

bool AskedToLeave() {
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, SIGTERM) == 1;
}

// Says every so often how long rounds took.
class RoundLog {
 public:
  explicit RoundLog(absl::Duration every) : every_(every), next_(absl::Now() + every) {}

  void Note(absl::Duration round) {
    times_.push_back(absl::ToDoubleSeconds(round));
    if (absl::Now() < next_) return;
    std::cout << absl::StrFormat("rounds %d: p50 %.6f s, p99 %.6f s\n", times_.size(),
                                 Quantile(times_, 0.5), Quantile(times_, 0.99))
              << std::flush;
    times_.clear();
    next_ += every_;
  }

 private:
  const absl::Duration every_;
  absl::Time next_;
  std::vector<double> times_;
};

// The loss to report for the next step, if any. `rate` is the learning rate of the last one.
absl::optional<float> LossAt(const Flags& flags, Step step, double rate) {
  if (flags.bad_from_step < 0) return absl::nullopt;
  const bool late = static_cast<int64_t>(step.value()) >= flags.bad_from_step;
  return late && rate > flags.bad_above_rate ? 7.0F : 2.0F;
}

// The most memory that this process ever held, with what it shares, in bytes.
int64_t PeakMemory() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{1024} * usage.ru_maxrss;
}

void SayEnd(Step step, uint64_t counted, const std::vector<float>& parameters) {
  const auto range = std::minmax_element(parameters.begin(), parameters.end());
  std::cout
      << absl::StrFormat(
             "parameters at step %d: %.9g to %.9g\npushes that counted: %d\npeak memory: %d\n",
             step.value(), *range.first, *range.second, counted, PeakMemory())
      << std::flush;
}

// As RemoteOptimizer, it observes before it leaves.
absl::Status Evaluate(const Job& job, JoinRequest request, ParameterClient& client) {
  const JoinRequest observes = job.context().Identity(SessionRole::kObserver);
  request.role = observes.role;
  request.worker = observes.worker;
  request.process_nonce = observes.process_nonce;
  request.memory = nullptr;
  auto connection = job.context().Connect();
  if (!connection.ok()) return connection.status();
  ParameterClient observer(*std::move(connection));
  std::vector<float> parameters(request.layout.size());
  absl::Status status = observer.Join(request, absl::MakeSpan(parameters));
  if (status.ok()) status = client.Leave({});
  if (status.ok()) status = observer.AwaitEnd(absl::MakeSpan(parameters));
  if (!status.ok()) return status;
  std::cout << "training has ended at step " << observer.step().value() << "\n" << std::flush;
  const sigset_t signals = LeaveSignals();
  int signal = 0;
  sigwait(&signals, &signal);
  return observer.Leave({{{"test accuracy", parameters[0]}}});
}

absl::Status Work(const Flags& flags, const Job& job) {
  JoinRequest request = MakeJoinRequest(flags, job);
  // As RemoteOptimizer: the server reads it there, if it can.
  auto memory = SharedMemory::Create(flags.elements);
  if (!memory.ok()) return memory.status();
  const SharedFloats gradient = {(*memory)->floats(), *memory};
  request.memory = *memory;
  auto connection = job.context().Connect();
  if (!connection.ok()) return connection.status();
  ParameterClient client(*std::move(connection), job.context().push_encoding(),
                         job.context().pull_encoding());
  std::vector<float> parameters(flags.elements, 0.0F);
  const absl::Status joined = client.Join(request, absl::MakeSpan(parameters));
  if (!joined.ok()) return joined;
  // Not before it has joined, as programs do: until then it holds a copy of its parameters.
  std::fill((*memory)->floats().begin(), (*memory)->floats().end(), flags.gradient);
  std::cout << absl::StrCat("joined at step ", client.step().value(), "\n") << std::flush;
  RoundLog rounds(flags.report_every > 0 ? absl::Seconds(flags.report_every)
                                         : absl::InfiniteDuration());
  uint64_t counted = 0;
  double rate = 1;
  while (client.step().value() < flags.steps && !(flags.leave_on_sigterm && AskedToLeave())) {
    if (flags.stop_at_step == static_cast<int64_t>(client.step().value())) {
      return Stop(flags, job.context().ticket(), client, gradient.values);
    }
    absl::SleepFor(absl::Seconds(flags.batch_time));
    const absl::Time began = absl::Now();
    const float before = parameters[0];
    if (flags.rows > 0) client.SetRows(RowsOf(flags, client.step()));
    const auto round = client.PushPull(gradient, 1, LossAt(flags, client.step(), rate),
                                       absl::MakeSpan(parameters));
    if (!round.ok()) return round.status();
    if (flags.gradient != 0) rate = (before - parameters[0]) / flags.gradient;
    const Disposition told = round->disposition;
    counted += told == Disposition::kAccepted || told == Disposition::kApplied ? 1 : 0;
    if (flags.report_every > 0) rounds.Note(absl::Now() - began);
  }
  const absl::Status told = flags.rows > 0 ? SayRows(client) : absl::OkStatus();
  if (!told.ok()) return told;
  SayEnd(client.step(), counted, parameters);
  return flags.evaluate ? Evaluate(job, request, client) : client.Leave({});
}

int Main(int argc, char** argv) {
  CLI::App app("A worker with gradients of one value.", "pushing_worker_program");
  Flags flags;
  app.add_option("--steps", flags.steps, "to be made")->required();
  app.add_option("--gradient", flags.gradient, "value of every element")->required();
  CLI::Option* const elements =
      app.add_option("--elements", flags.elements, "of the model")->check(CLI::PositiveNumber);
  app.add_option("--momentum", flags.momentum, "of the optimizer");
  app.add_option("--rows", flags.rows, "of a table, which each push touches");
  app.add_option("--batch-time", flags.batch_time, "seconds to wait before each push");
  app.add_option("--report-every", flags.report_every,
                 "seconds after which to say how long rounds took");
  app.add_flag("--leave-on-sigterm", flags.leave_on_sigterm,
               "on SIGTERM finish the round under way, and leave");
  app.add_flag("--join,!--no-join", flags.join, "take part in the job, not only in its launch");
  app.add_flag("--evaluate", flags.evaluate, "at the end report a result, after a SIGTERM");
  app.add_option("--stop-at-step", flags.stop_at_step, "wait there to be killed");
  app.add_flag("--in-push", flags.in_push, "stop when half of that step's push is sent")
      ->excludes(elements);
  app.add_flag("--die", flags.die, "do not wait, raise SIGKILL");
  app.add_option_function<int>(
      "--exit", [&flags](int code) { flags.exit_code = code; }, "do not wait, call exit(CODE)");
  app.add_option("--bad-from-step", flags.bad_from_step,
                 "report a loss of 2 for each step, and of 7 from this one on");
  app.add_option("--bad-above-rate", flags.bad_above_rate,
                 "of 7 only as long as steps are made with a larger learning rate");
  AddJobFlags(app, flags.job);
  CLI11_PARSE(app, argc, argv);
  if (flags.leave_on_sigterm || flags.evaluate) HoldBackSigterm();
  auto job = Job::Start(flags.job);
  absl::Status status = job.status();
  if (job.ok() && job->is_server()) return job->Serve();
  if (job.ok() && flags.join) status = Work(flags, *job);
  if (status.ok()) return 0;
  return ReportFailure("pushing_worker_program", status);
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) { return sluice::Main(argc, argv); }
