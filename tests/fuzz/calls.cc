// Whole calls, in any order: workers and observers join, push, pull and leave, an operator changes
// settings, and the server is killed and started again. Each message is a right one, into which the
// input's bytes are merged: they replace or add any field. CallServer checks what must hold.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/encoding/codec.h"
#include "common/encoding/encoding.h"
#include "common/wire/chunk.h"
#include "common/wire/messages.h"
#include "common/wire/settings.h"
#include "sluice/v1/parameter_server.pb.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/oracles/call_server.h"
#include "tests/fuzz/target.h"
#include "tests/testing/buffers.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

constexpr int kMostCalls = 200;
constexpr uint64_t kMostElements = 4096;  // of a model that a message brings
constexpr uint32_t kNames = 3;

// A number of the choices that one byte makes.
class Bits {
 public:
  explicit Bits(uint8_t bits) : bits_(bits) {}
  uint32_t Below(uint32_t end) {
    const uint32_t number = bits_ % end;
    bits_ /= end;
    return number;
  }
  bool Coin() { return Below(2) == 1; }

 private:
  uint32_t bits_;
};

Consistency TakeConsistency(Input& input) {
  using Mode = ConsistencyMode;
  constexpr Mode kModes[] = {Mode::kSync, Mode::kBackup, Mode::kBounded, Mode::kSsp, Mode::kAsync};
  Bits bits(input.Byte());
  Consistency consistency;
  consistency.mode = kModes[bits.Below(5)];
  if (consistency.HasQuorum()) consistency.quorum = 1 + bits.Below(2);
  if (consistency.mode == Mode::kBounded) consistency.max_staleness = bits.Below(3);
  if (consistency.mode == Mode::kSync && bits.Coin()) consistency.order = ReductionOrder::kRank;
  if (consistency.mode == Mode::kAsync) consistency.inconsistent_reads = bits.Coin();
  if (bits.Coin()) consistency.max_step_wait = absl::Seconds(5);
  consistency.on_max_step_wait = bits.Coin() ? StepWaitAction::kEvict : StepWaitAction::kProceed;
  return consistency;
}

ShardOptions TakeOptions(Input& input) {
  ShardOptions options;
  options.job_id = "job";
  options.consistency = TakeConsistency(input);
  options.max_elements = kMostElements;
  Bits bits(input.Byte());
  options.expected_workers = 1 + bits.Below(3);
  options.guards.skip_not_finite = bits.Coin();
  if (bits.Coin()) options.guards.clip_norm = 1;
  if (bits.Coin()) options.guards.max_push_norm = 1e3;
  if (bits.Coin()) options.max_in_flight_bytes = 1;
  if (bits.Coin()) options.start_timeout = absl::Seconds(5);
  if (bits.Coin()) options.tick = absl::Seconds(1);
  return options;
}

// Reads calls from the input and makes them.
class Calls {
 public:
  explicit Calls(absl::string_view bytes)
      : input_(bytes), options_(TakeOptions(input_)), server_(options_, input_.Byte() % 2 == 1) {}

  void Make() {
    for (int i = 0; i < kMostCalls && !input_.empty(); ++i) MakeOne(input_.Byte());
  }

 private:
  void MakeOne(uint8_t what);
  void MakeRare(uint8_t what);
  void Join();
  void Initialize();
  void BeginPush();
  void Send();
  void PushWhole();
  void Pull();
  void Leave();
  void Operate();

  // The message, with the input's bytes merged into it.
  template <typename Message>
  std::string Mixed(const Message& message) {
    return absl::StrCat(message.SerializeAsString(), input_.Word());
  }

  size_t Pick(size_t count) { return input_.Byte() % count; }
  // Mostly the latest; 0 if there is none.
  uint64_t Session() {
    const std::vector<uint64_t>& all = server_.sessions();
    return all.empty() ? 0 : all[all.size() - 1 - Pick(std::min<size_t>(all.size(), 8))];
  }
  std::vector<float> Vector(float element) const {
    const auto layout = server_.layout();
    return std::vector<float>(layout == nullptr ? 1 : layout->size(), element);
  }
  float Element() { return static_cast<float>(static_cast<int8_t>(input_.Byte())) / 8; }
  v1::PushHeader Header(uint64_t session) const;

  Input input_;
  const ShardOptions options_;
  CallServer server_;
  std::map<uint64_t, uint64_t> sequences_;  // by session
};

void Calls::Join() {
  Bits bits(input_.Byte());
  JoinRequest request;
  request.role = bits.Below(8) == 0 ? SessionRole::kObserver : SessionRole::kWorker;
  request.worker = absl::StrCat("w", bits.Below(kNames));
  request.process_nonce = ProcessNonce(1 + bits.Below(2));
  request.layout = LayoutOf({{"w", 3}, {"mean", 1, RangeKind::kStatistic}});
  SgdOptions sgd;
  sgd.learning_rate = 0.5;
  sgd.momentum = 0.5;
  request.optimizer.options = sgd;
  server_.Join(Mixed(ToProto(request)));
}

void Calls::Initialize() {
  v1::InitializeParamsRequest header;
  header.mutable_header()->set_session(Session());
  const std::vector<float> values = Vector(Element());
  const std::string chunk = BytesOf(EncodeChunk(0, Share(values), Checksums::kOn));
  const std::string first = Mixed(header);
  server_.Initialize(first, absl::StrCat(chunk, input_.Word()));
}

v1::PushHeader Calls::Header(uint64_t session) const {
  v1::PushHeader header;
  const ShardStatus status = server_.status();
  header.set_session(session);
  header.set_step(status.step.value());
  header.set_incarnation(status.incarnation.value());
  header.set_samples(1);
  return header;
}

void Calls::BeginPush() {
  const uint64_t session = Session();
  v1::PushGradientsRequest message;
  *message.mutable_header() = Header(session);
  const bool repeats = input_.Byte() % 4 == 0;
  uint64_t& sequence = sequences_[session];
  message.mutable_header()->set_sequence(repeats ? std::max<uint64_t>(sequence, 1) : ++sequence);
  server_.BeginPush(Mixed(message));
}

void Calls::Send() {
  const size_t push = Pick(server_.pushes());
  const std::vector<float> values = Vector(Element());
  Bits bits(input_.Byte());
  const uint64_t half = bits.Coin() ? values.size() / 2 : 0;
  const uint64_t begin = bits.Coin() ? half : 0;
  const uint64_t end = begin == 0 && half > 0 ? half : values.size();
  std::string message;
  if (bits.Below(4) == 0) {
    message = BytesOf(
        EncodeChunk(EncodeValues(begin, absl::MakeConstSpan(values).subspan(begin, end - begin),
                                 *ParseEncoding("int8"), ChunkContext(), BuiltinTransforms())));
  } else {
    message = BytesOf(
        EncodeChunk(begin, Share({values.begin() + begin, values.begin() + end}), Checksums::kOn));
  }
  server_.Send(push, absl::StrCat(message, input_.Word()));
}

// A push as a worker makes it.
void Calls::PushWhole() {
  BeginPush();
  const size_t push = server_.pushes() - 1;
  server_.Send(push, BytesOf(EncodeChunk(0, Share(Vector(Element())), Checksums::kOff)));
  server_.EndPush(push);
}

void Calls::Pull() {
  v1::PullParamsRequest message;
  message.set_session(Session());
  Bits bits(input_.Byte());
  const uint64_t step = server_.status().step.value();
  message.set_min_step(step + bits.Below(3));
  if (bits.Coin()) message.set_have_step(step);
  if (bits.Coin()) message.set_after(sequences_[message.session()]);
  message.set_consistent(bits.Coin());
  server_.Pull(Mixed(message));
}

void Calls::Leave() {
  v1::LeaveRequest message;
  message.set_session(Session());
  if (input_.Byte() % 2 == 1) (*message.mutable_results())["accuracy"] = Element();
  server_.Leave(Mixed(message));
}

void Calls::Operate() {
  const uint8_t what = input_.Byte() % 8;
  if (what < 3) return server_.SetConsistency(Mixed(ToProto(TakeConsistency(input_))));
  if (what == 7) return server_.Drain();
  if (what == 6) return server_.Evict(absl::StrCat("w", Pick(kNames)));
  double rate = 0;
  const uint64_t bits = input_.Number();
  std::memcpy(&rate, &bits, sizeof(rate));
  server_.SetLearningRate(rate);
}

void Calls::MakeOne(uint8_t what) {
  const bool any_push = server_.pushes() > 0;
  switch (what % 16) {
    case 0:
    case 1:
      return Join();
    case 2:
      return Initialize();
    case 3:
    case 4:
      return PushWhole();
    case 5:
      return BeginPush();
    case 6:
      if (any_push) Send();
      return;
    case 7:
      if (any_push) server_.EndPush(Pick(server_.pushes()));
      return;
    case 8:
      if (any_push) server_.BreakPush(Pick(server_.pushes()));
      return;
    case 9:
    case 10:
      return Pull();
    default:
      return MakeRare(what % 16);
  }
}

void Calls::MakeRare(uint8_t what) {
  switch (what) {
    case 11: {
      if (server_.pulls() == 0) return;
      const size_t pull = Pick(server_.pulls());
      return input_.Byte() % 2 == 0 ? server_.BreakPull(pull) : server_.ReleasePull(pull);
    }
    case 12: {
      const uint64_t session = Session();
      const uint8_t how = input_.Byte() % 4;
      if (how == 0) return server_.BreakJoin(session);
      return how == 1 ? Leave() : server_.Heartbeat(session);
    }
    case 13:
      return server_.Pass(absl::Milliseconds(100) * input_.Byte());
    case 14:
      return Operate();
    default: {
      const uint8_t how = input_.Byte();
      if (how % 4 == 0) return server_.TakeCheckpoint();
      return how % 4 == 1 ? server_.Restart(how / 4) : server_.Sync(how / 4);
    }
  }
}

}  // namespace

void Try(absl::string_view bytes) { Calls(bytes).Make(); }

}  // namespace sluice
