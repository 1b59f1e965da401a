// What holds in every job: with one server and with three, in each mode, with each kind of
// encoding, with parts of a push that come late, and with pushes that break off. The sentences are
// the same for every row. The servers run in this process; the calls are real.

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/encoding/codec.h"
#include "common/encoding/transforms/builtin_transforms.h"
#include "common/tensor/stripes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/striped_job.h"
#include "tests/testing/server/connect.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"
#include "worker/connection/server_connection.h"

namespace sluice {
namespace {

constexpr uint32_t kElements = 1000;
constexpr uint32_t kWorkers = 3;
constexpr uint32_t kRounds = 6;
constexpr uint64_t kWarmup = 1024;  // the step from s to s + 1 has the learning rate (s + 1) / 1024

struct Mode {
  std::string name;
  ShardOptions (*options)();
};
const Mode kModes[] = {
    {"Sync", [] { return Sync(kWorkers); }},   {"Backup", [] { return Backup(2, kWorkers); }},
    {"Bounded", [] { return Bounded(1, 3); }}, {"Ssp", [] { return Ssp(1, kWorkers); }},
    {"Async", [] { return Async(1); }},
};

struct Encodings {
  std::string name;
  std::string push;
  std::string pull;
};
const Encodings kEncodings[] = {
    {"None", "float32", "float32"},
    {"Block", "int8", "float16"},
    {"Sparse", "top-k:0.5", "float32/zstd"},
    {"Stochastic", "int8:stochastic", "float16"},
};

using Row = std::tuple<uint32_t, Mode, Encodings>;

// The same in every worker and every round. So a step's parameters follow from its number.
struct Gradient {
  Gradient(uint32_t servers, const Encoding& encoding) : stripes(kElements, servers) {
    sent.resize(servers);
    for (uint32_t stripe = 0; stripe < servers; ++stripe) {
      Values part(stripes.SizeOf(stripe));
      for (uint64_t i = 0; i < part.size(); ++i) {
        part[i] = std::sin(1 + static_cast<float>(stripes.InVector(stripe, i)));
      }
      sent[stripe] = EncodeValues(0, part, encoding, {}, BuiltinTransforms());
      EXPECT_THAT(DecodeValues(sent[stripe], absl::MakeSpan(part), BuiltinTransforms()), IsOk());
      for (uint64_t i = 0; i < part.size(); ++i) {
        decoded[stripes.InVector(stripe, i)] = part[i];
      }
    }
  }

  const Stripes stripes;
  std::vector<EncodedChunk> sent;  // by server
  Values decoded = Values(kElements);
};

// Used by one thread.
class SteadyWorker {
 public:
  SteadyWorker(const std::string& address, uint32_t index, const Encodings& encodings,
               const Gradient& gradient)
      : index_(index), gradient_(gradient), connection_(ConnectTo(address)) {
    JoinRequest request = WorkerRequest(absl::StrCat("worker-", index), kElements);
    request.process_nonce = ProcessNonce(100 + index);
    const auto welcome = connection_->Join(request);
    EXPECT_THAT(welcome, IsOk());
    if (welcome.ok()) welcome_ = *welcome;
    connection_->UsePullEncoding(*ParseEncoding(encodings.pull));
    const auto offered = connection_->Initialize(welcome_.session, Values(kElements));
    EXPECT_TRUE(offered.ok() || index > 0) << offered.status();
  }

  void Run() {
    Pull();
    for (uint32_t round = 0; !IsDone(round); ++round) {
      sequence_ = sequence_.Next();
      if (round % kWorkers == index_) BreakOff();
      Push();
      Pull();
    }
  }

  void Leave() { EXPECT_THAT(connection_->Leave(welcome_.session, {}), IsOk()); }

  uint32_t completed() const { return completed_; }  // steps
  Step step() const { return step_; }                // the latest that it has heard of

 private:
  // In `backup` a late gradient is stale. One who had made all its rounds would leave the others
  // without a quorum, so all stop at one step.
  bool IsDone(uint32_t round) const {
    const bool is_backup = welcome_.consistency.mode == ConsistencyMode::kBackup;
    return is_backup ? held_ >= Step(kRounds) : round == kRounds;
  }

  PushHeader Header() const {
    PushHeader header;
    header.session = welcome_.session;
    header.sequence = sequence_;
    header.incarnation = welcome_.incarnation;
    header.step = held_;
    return header;
  }

  // One server gets its part; then the worker gives the push up.
  void BreakOff() {
    const auto push = connection_->StartPush(Header(), kElements, BatchIs::kInHeader);
    push->SendEach([&](uint32_t stripe, OutgoingPush& to) {
      return stripe != 0 || gradient_.stripes.count() == 1 || to.Send(gradient_.sent[stripe]);
    });
    push->Cancel();
  }

  // Each server's part comes after those of the servers behind it.
  void Push() {
    const auto push = connection_->StartPush(Header(), kElements, BatchIs::kInHeader);
    std::array<absl::Notification, 4> sent;
    sent[gradient_.stripes.count()].Notify();
    push->SendEach([&](uint32_t stripe, OutgoingPush& to) {
      sent[stripe + 1].WaitForNotification();
      const bool open = to.Send(gradient_.sent[stripe]);
      sent[stripe].Notify();
      return open;
    });
    const auto outcome = push->Finish(PushSummary());
    ASSERT_THAT(outcome, IsOk());
    if (outcome->disposition == Disposition::kApplied) ++completed_;
    step_ = std::max(step_, outcome->step);
  }

  void Pull() {
    PullRequest request;
    request.session = welcome_.session;
    if (sequence_ > Sequence()) request.after = sequence_;
    Values parameters(kElements, NAN);
    const auto header = connection_->StartPull(request)->Read(absl::MakeSpan(parameters));
    ASSERT_THAT(header, IsOk());
    EXPECT_GE(header->step, held_);
    held_ = header->step;
    step_ = std::max(step_, held_);
    CheckIsStep(*header, parameters);
  }

  // A pull is one step, whole, and its header is that step's.
  void CheckIsStep(const PullHeader& header, const Values& parameters) const {
    const auto step = static_cast<double>(header.step.value());
    EXPECT_DOUBLE_EQ(header.learning_rate, (step + 1) / kWarmup);
    const double rates = step * (step + 1) / 2 / kWarmup;
    for (uint32_t i = 0; i < kElements; ++i) {
      const double expected = -rates * gradient_.decoded[i];
      ASSERT_NEAR(parameters[i], expected, 0.01 * std::abs(expected) + 1e-6)
          << "element " << i << " in server " << gradient_.stripes.StripeOf(i) << ", step " << step;
    }
  }

  const uint32_t index_;
  const Gradient& gradient_;
  const std::unique_ptr<ServerConnection> connection_;
  Welcome welcome_;
  Sequence sequence_;
  Step held_;
  Step step_;
  uint32_t completed_ = 0;
};

class EveryJobTest : public ::testing::TestWithParam<Row> {};

TEST_P(EveryJobTest, PullsAreWholeStepsAndEachStepIsCompletedByOnePushAndTheBooksBalance) {
  const auto& [servers, mode, encodings] = GetParam();
  const Gradient gradient(servers, *ParseEncoding(encodings.push));
  ShardOptions options = mode.options();
  options.schedule.warmup_steps = kWarmup;
  StripedJob job(options, servers);
  std::vector<std::unique_ptr<SteadyWorker>> workers;
  for (uint32_t i = 0; i < kWorkers; ++i) {
    workers.push_back(std::make_unique<SteadyWorker>(job.address(), i, encodings, gradient));
  }
  std::vector<std::thread> threads;
  for (const auto& worker : workers) threads.emplace_back([&] { worker->Run(); });
  for (std::thread& thread : threads) thread.join();
  uint64_t completed = 0;
  Step last;
  for (const auto& worker : workers) {
    completed += worker->completed();
    last = std::max(last, worker->step());
  }
  EXPECT_EQ(completed, last.value());
  EXPECT_GE(completed, kRounds);
  for (const auto& worker : workers) worker->Leave();
  workers.clear();
  EXPECT_TRUE(job.EndsWell());
}

std::string NameOf(const ::testing::TestParamInfo<Row>& row) {
  return absl::StrCat(std::get<0>(row.param), "Of", std::get<1>(row.param).name,
                      std::get<2>(row.param).name);
}

INSTANTIATE_TEST_SUITE_P(AllRows, EveryJobTest,
                         ::testing::Combine(::testing::Values(1u, 3u), ::testing::ValuesIn(kModes),
                                            ::testing::ValuesIn(kEncodings)),
                         NameOf);

}  // namespace
}  // namespace sluice
