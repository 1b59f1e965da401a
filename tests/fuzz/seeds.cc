// Writes what fuzzing begins with: small files and messages that are right, one folder for each
// target. What is kept in corpus/ was found from these.
//
//   bazel run //tests/fuzz:seeds -- FOLDER
#include <glog/logging.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/little_endian.h"
#include "common/checkpoint/file_names.h"
#include "common/checkpoint/reading/rows_format.h"
#include "common/checkpoint/reading/rows_header.h"
#include "common/encoding/checksum.h"
#include "common/encoding/codec.h"
#include "common/encoding/transforms/builtin_transforms.h"
#include "common/launch/job_ticket.h"
#include "common/tensor/stripes.h"
#include "common/tensor/tensor_chunk.h"
#include "common/wire/chunk.h"
#include "common/wire/encoding.h"
#include "common/wire/join.h"
#include "common/wire/messages.h"
#include "common/wire/status.h"
#include "server/durable/checkpoint/checkpoint_format.h"
#include "server/durable/checkpoint/stripe_writer.h"
#include "server/durable/format/saved_state.h"
#include "server/rpc/servers/command_messages.h"
#include "server/rpc/servers/report_messages.h"
#include "server/web/history/history.h"
#include "sluice/v1/module_server.pb.h"
#include "sluice/v1/parameter_server.pb.h"
#include "tests/testing/buffers.h"
#include "tests/testing/durable/checkpoints.h"
#include "tests/testing/durable/faulty_files.h"
#include "tests/testing/server/messages.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

constexpr const char* kEncodings[] = {"float32",
                                      "float32/planes",
                                      "float32/zstd",
                                      "float32/planes/zstd:3",
                                      "float32/nonzero",
                                      "float32/nonzero/zstd",
                                      "float32/nonzero/pdict",
                                      "float32/pdict",
                                      "bfloat16/nonzero/pdict",
                                      "top-k:0.1/pdict",
                                      "float16/planes",
                                      "bfloat16/zstd",
                                      "bfloat16/planes/zstd",
                                      "int8",
                                      "int8:stochastic",
                                      "sign",
                                      "sign/zstd",
                                      "top-k:0.1",
                                      "random-k:0.1",
                                      "low-rank:2",
                                      "top-k:0.1:float16",
                                      "random-k:0.1:float16/zstd"};

// One file for each seed, in the folder of its target.
class Seeds {
 public:
  explicit Seeds(std::string folder) : folder_(std::move(folder)) {}

  void Put(const std::string& target, const std::string& bytes) {
    const std::filesystem::path folder = folder_ + "/" + target;
    std::filesystem::create_directories(folder);
    std::ofstream file(folder / absl::StrCat(counts_[target]++), std::ios::binary);
    file << bytes;
    CHECK(file.flush().good()) << folder;
  }

 private:
  const std::string folder_;
  std::map<std::string, int> counts_;
};

std::string Byte(size_t value) { return std::string(1, static_cast<char>(value)); }
std::string Word(const std::string& bytes) { return Byte(bytes.size()) + bytes; }

Values SomeValues(size_t count) {
  Values values(count);
  for (size_t i = 0; i < count; ++i) {
    values[i] = i % 3 == 0 ? 0.0f : static_cast<float>(i % 17) * 0.25f - 2;
  }
  return values;
}

void PutEncodings(Seeds& seeds) {
  const Values values = SomeValues(300);
  ChunkContext context;
  context.columns = 20;
  for (const char* name : kEncodings) {
    seeds.Put("encoding_text", absl::StrCat(name, ",t1=int8,t*=none"));
    const std::string layout = Byte(1) + Byte(0) + Byte(60) + Byte(20) + Byte(201) + Byte(9);
    seeds.Put("round_trip", absl::StrCat(Word(name), LittleEndian64(7), layout,
                                         BytesOf(absl::MakeConstSpan(values))));
    EncodedChunk chunk =
        EncodeValues(0, values, *ParseEncoding(name), context, BuiltinTransforms());
    seeds.Put("payload",
              absl::StrCat(Byte(1), Word(ToProto(chunk.how).SerializeAsString()), chunk.payload));
    for (const bool of_vector : {false, true}) {
      chunk.of_vector = of_vector;
      seeds.Put("chunk_message",
                absl::StrCat(Byte(0), Byte(1), Byte(5), BytesOf(EncodeChunk(chunk))));
    }
  }
  for (const char* text :
       {"auto", "auto:int8,bfloat16,t0=none", "top-k:0.01:momentum:warmup=8", "sign:momentum"}) {
    seeds.Put("encoding_text", text);
  }
}

void PutChunks(Seeds& seeds) {
  const SharedFloats floats = Share(SomeValues(9));
  for (const Checksums checksums : {Checksums::kOff, Checksums::kOn}) {
    const std::string message = BytesOf(EncodeChunk(7, floats, checksums));
    for (size_t how : {0, 1}) seeds.Put("chunk_message", Byte(how) + Byte(0) + message);
  }
  seeds.Put("chunk_message", Byte(2) + Byte(0) + BytesOf(EncodeSharedChunk(3, 10, 20)));
  seeds.Put("chunk_message", Byte(0) + Byte(0) + SummaryOf(8).SerializeAsString());
}

PushHeader FullHeader() {
  PushHeader header;
  header.sequence = Sequence(1);
  header.loss = 0.5f;
  header.encodings = EncodingReport{{"int8", 1e6, 4, 1e9, 1e9}, {}};
  header.attachments = std::make_shared<Attachments>(Attachments{{"acme.Report", "data"}});
  return header;
}

void PutMessages(Seeds& seeds) {
  JoinRequest join;
  join.worker = "a";
  join.process_nonce = ProcessNonce(1);
  join.layout = LayoutOf({{"w", 3}, {"mean", 2, RangeKind::kStatistic}});
  join.optimizer = {AdamOptions(), {{{"w"}, AdamOptions()}}};
  Welcome welcome;
  welcome.consistency.max_step_wait = absl::Seconds(3);
  const absl::Status error = MakeError(Reason::kBadLayout, "why");
  v1::Layout layout;
  for (const LayoutRange& range : join.layout.ranges()) *layout.add_ranges() = ToProto(range);
  const std::string messages[] = {
      ToProto(join).SerializeAsString(),
      ToProto(welcome.consistency).SerializeAsString(),
      ToGrpcStatus(error).error_details(),
      ToProto(welcome).SerializeAsString(),
      ToProto(JobEvent{JobEvent::Kind::kPolicyChanged, Step(2), {}}).SerializeAsString(),
      ToProto(FullHeader()).SerializeAsString(),
      ToProto(PushSummary()).SerializeAsString(),
      ToProto(PushOutcome()).SerializeAsString(),
      ToProto(PullRequest()).SerializeAsString(),
      ToProto(PullHeader()).SerializeAsString(),
      ToProto(*ParseEncoding("top-k:0.1/zstd")).SerializeAsString(),
      ToProto(join.optimizer).SerializeAsString(),
      layout.SerializeAsString()};  // in the target's order
  for (size_t i = 0; i < std::size(messages); ++i) seeds.Put("messages", Byte(i) + messages[i]);
  for (const ConsistencyMode mode : {ConsistencyMode::kBackup, ConsistencyMode::kAsync}) {
    Consistency consistency;
    consistency.mode = mode;
    consistency.quorum = 3;
    consistency.max_step_wait = absl::Microseconds(1);
    seeds.Put("messages", Byte(1) + ToProto(consistency).SerializeAsString());
  }
}

// Cut into parts of several sizes.
void PutJoinParts(Seeds& seeds) {
  JoinRequest join;
  join.worker = "a";
  join.process_nonce = ProcessNonce(1);
  join.layout = LayoutOf({{"w", 3}, {"v", 2}, {"u", 1}, {"mean", 2, RangeKind::kStatistic}});
  join.optimizer = {AdamOptions(), {{{"w", "v"}, AdamOptions()}, {{"u"}, AdamOptions{0.5}}}};
  for (const size_t part_bytes : {40, 80, 160, 4096}) {
    std::string parts = Byte(3) + Byte(0);
    for (const v1::JoinRequest& part : SplitJoin(ToProto(join), part_bytes)) {
      const std::string bytes = part.SerializeAsString();
      parts += Byte(bytes.size() % 256) + Byte(bytes.size() / 256) + bytes;
    }
    seeds.Put("join_parts", parts);
  }
}

void PutDurable(Seeds& seeds) {
  const auto checkpoint = TrainedCheckpoint();
  seeds.Put("saved_state", EncodeSavedState(*checkpoint));
  FaultyFiles files;
  CHECK(WriteCheckpoint(*checkpoint, **files.Create("d/c")).ok());
  const std::string file = files.BytesOf("d/c");
  seeds.Put("checkpoint", Byte(1) + file);
  CHECK(WriteStripedCheckpoint(*checkpoint, {1, 2, 3}, **files.Create("d/s")).ok());
  seeds.Put("checkpoint", Byte(1) + files.BytesOf("d/s"));
  const uint64_t header = FromLittleEndian64(file);
  seeds.Put("safetensors", LittleEndian64(file.size() - 8 - header) + file.substr(8, header));
  std::string records;
  for (uint64_t step : {1, 2, 3, 4}) {
    StepRecord record;
    record.step = Step(step);
    record.incarnation = Incarnation(1);
    record.gradients = 1;
    record.terms.learning_rates = {0.1};
    record.contributors = {checkpoint->workers[0]};
    records += Byte(0) + Word(EncodeSavedStep(record));
  }
  seeds.Put("journal", Byte(1) + Byte(2) + Byte(0) + records);
}

// The stripe that stripe_file.cc expects, without rows and with files of them.
void PutStripes(Seeds& seeds) {
  const Layout layout =
      *Layout::Create({{"a", {100}, RangeKind::kParameter, DataType::kFloat32, 0, 100},
                       {"b", {46}, RangeKind::kParameter, DataType::kFloat32, 100, 46}});
  const StripeName name = {"job", Incarnation(2), Step(9), 1, 3};
  const uint64_t size = Stripes(layout.size(), name.stripes).SizeOf(name.stripe);
  const auto parameters = std::make_shared<Snapshot>();
  parameters->values = FloatBuffer::Zeroed(size);
  StripeCheckpoint stripe;
  stripe.parameters = parameters;
  stripe.slots.push_back({"m", FloatBuffer::Zeroed(size)});
  stripe.optimizer_steps = 7;
  for (const std::vector<RowFile>& rows : {std::vector<RowFile>(), {{Step(3), 5}, {Step(9), 6}}}) {
    FaultyFiles files;
    CHECK(WriteStripe(name, layout, stripe, **files.Create("d/s"), rows).ok());
    seeds.Put("stripe_file", Byte(1) + files.BytesOf("d/s"));
  }
}

// A whole file of two tables and a difference. The bytes are those that rows_file.cc reads.
void PutRows(Seeds& seeds) {
  RowsHeader header = {"job", Incarnation(1), Step(9), absl::nullopt, {}, {}};
  header.tables = {{"items", 2, {"momentum"}}, {"users", 1, {}}};
  const auto id = [](size_t pick, size_t touched, size_t touches) {
    return Byte(pick) + Byte(touched) + Byte(touches);
  };
  const std::string items =
      Byte(0) + Byte(7) + Byte(3) + Byte(0) + id(0, 2, 0) + id(1, 9, 1) + id(2, 3, 0);
  const std::string users =
      Byte(1) + Byte(200) + Byte(1) + Byte(2) + id(3, 1, 0) + Byte(0) + Byte(1);
  seeds.Put("rows_file",
            absl::StrCat(Byte(1), Word(EncodeRowsHeader(header)), Byte(2), items, users));
  header.base = Step(4);
  header.place = {1, 3};
  seeds.Put("rows_file", absl::StrCat(Byte(1), Word(EncodeRowsHeader(header)), Byte(1), items));
  const std::string prefix = EncodeRowsPrefix(EncodeRowsHeader(header));
  seeds.Put("rows_file", absl::StrCat(Byte(0), prefix, LittleEndian64(Checksum(prefix))));
}

// Two workers that train, a checkpoint, and a crash; in each mode, with and without a journal. The
// bytes are those that calls.cc reads.
void PutCalls(Seeds& seeds) {
  const std::string no_more(1, '\0');  // nothing is merged into a message
  const auto join = [&](size_t worker) { return Byte(0) + Byte(1 + 8 * worker) + no_more; };
  const auto push = [&](size_t session) {
    return Byte(3) + Byte(session) + Byte(1) + no_more + Byte(8);
  };
  const auto pull = [&](size_t session) { return Byte(9) + Byte(session) + Byte(0) + no_more; };
  const std::string rounds = push(0) + push(1) + pull(0) + pull(1) + Byte(15) + Byte(6) + push(1) +
                             push(0) + pull(0) + pull(1) + Byte(15) + Byte(7);
  const std::string initialize = Byte(2) + Byte(0) + Byte(16) + no_more + no_more;
  for (size_t mode = 0; mode < 5; ++mode) {
    for (size_t journal : {0, 1}) {
      const std::string story =
          absl::StrCat(join(0), join(1), initialize, rounds, Byte(15), Byte(0), rounds, Byte(15),
                       Byte(5), join(1), join(0), rounds);
      seeds.Put("calls", absl::StrCat(Byte(mode), Byte(1), Byte(journal), story));
    }
  }
}

void PutModuleMessages(Seeds& seeds) {
  v1::ModuleTensor tensor;
  tensor.set_type(v1::ELEMENT_FLOAT32);
  tensor.add_shape(2);
  tensor.add_shape(1);
  tensor.set_requires_grad(true);
  tensor.set_data(std::string(8, 'x'));
  v1::ModuleRequest request;
  request.mutable_forward()->set_call(1);
  *request.mutable_forward()->add_inputs() = tensor;
  tensor.set_type(v1::ELEMENT_BOOL);
  tensor.set_data(std::string(2, 1));
  *request.mutable_forward()->add_inputs() = tensor;
  seeds.Put("module_messages", request.SerializeAsString());
  *request.mutable_backward()->mutable_gradient() = tensor;
  seeds.Put("module_messages", request.SerializeAsString());
  v1::ModuleReply reply;
  *reply.mutable_gradients()->add_gradients() = tensor;
  seeds.Put("module_messages", reply.SerializeAsString());
  reply.mutable_failure()->set_code(3);
  reply.mutable_failure()->set_reason("BAD_ARGUMENT");
  seeds.Put("module_messages", reply.SerializeAsString());
}

// What stands in a stream: the size in two bytes, then the message.
template <typename Message>
std::string InStream(const Message& message) {
  const std::string bytes = message.SerializeAsString();
  return Byte(bytes.size() % 256) + Byte(bytes.size() / 256) + bytes;
}

// Commands in the order of a job's life, and their reports; one command is cut into two parts.
void PutServerMessages(Seeds& seeds) {
  const PushName name = {SessionId(3), Sequence(4), 5};
  StepOrder order;
  order.kind = StepOrder::Kind::kPrepare;
  order.optimizer.learning_rates = {0.1};
  const ReplicaCommand commands[] = {
      OpenModel{std::make_shared<const Layout>(LayoutOf({{"w", 3}})), {AdamOptions()}},
      OpenSession{SessionId(3), SessionRole::kWorker, SharedMemoryName{5, 6, 7, 3}},
      AdmitPush{PushId(6), name, true},
      TakeParameters{PushId(6), Step(7)},
      AddPush{PushId(6), {0.5f, 2, 3}, true},
      order,
      PublishStep(),
      ReleasePull{{SessionId(3), 9}, PullHeader()},
      TakeCheckpoint{"job", Incarnation(2), Step(7)},
      LoadCheckpoint{{"job", Incarnation(2), Step(7), {8, 9}, {"momentum"}, 6}, {}},
      ReplayStep{Step(8), Incarnation(4)},
      EndSession{SessionId(3), {PushId(1), PushId(6)}},
      EndJob()};
  std::string all;
  for (const ReplicaCommand& command : commands) all += InStream(ToProto(command));
  seeds.Put("server_messages", Byte(0) + all);
  v1::SequencerMessage whole = ToProto(commands[0]);
  whole.set_number(1);
  const std::string bytes = whole.SerializeAsString();
  v1::SequencerMessage part;
  part.set_number(1);
  part.mutable_part()->set_bytes(bytes.substr(0, 9));
  part.mutable_part()->set_more(true);
  const std::string first = InStream(part);
  part.mutable_part()->set_bytes(bytes.substr(9));
  part.mutable_part()->set_more(false);
  seeds.Put("server_messages", Byte(0) + first + InStream(part));
  const ReplicaReport reports[] = {
      HaveReport{PushId(6), MakeError(Reason::kBadChunk, "why"), 2.5, 12},
      StripeReport(),
      LoadedReport(),
      SavedReport(),
      JournalReport(),
      SummaryReport()};
  all.clear();
  for (const ReplicaReport& report : reports) all += InStream(ToProto(report));
  seeds.Put("server_messages", Byte(1) + all);
  seeds.Put("server_messages", Byte(2) + ToProto(StripeFigures()).SerializeAsString());
}

// Three seconds of one worker, and an event.
void PutHistory(Seeds& seeds) {
  History history;
  history.BeginJob("job");
  for (const double time : {1e9, 1e9 + 1, 1e9 + 2}) {
    HistorySample sample;
    sample.values[kTime] = time;
    sample.losses[history.LaneOf("w", {"w"})] = 0.5f;
    history.Add(sample);
  }
  history.Add({1e9, 7, "joined", "w"});
  const std::string file = history.Encode();
  seeds.Put("page_history", Byte(0) + file);
  seeds.Put("page_history", Byte(1) + file.substr(file.find('\n') + 9));
}

void PutTexts(Seeds& seeds) {
  for (const char* address : {"node7:7070", "[::1]:0", "unix:/tmp/s", "127.0.0.1:65535"}) {
    seeds.Put("launch_text", Byte(0) + address);
  }
  seeds.Put("launch_text", Byte(1) + EncodeTicket(JobTicket{"a:1", "j", "t", {"c", "k", "ca"}}));
  seeds.Put("launch_text", Byte(2) + "checkpoint-000001-000000000002.safetensors");
  seeds.Put("flags", Byte(0) + "--mode=bounded\n--quorum=2\n--max-staleness=3\n--lease=1.5");
  seeds.Put("flags", Byte(0) + "--lr-schedule=cosine\n--lr-total-steps=9\n--max-step-wait=2");
  seeds.Put("flags", Byte(1) + "--optimizer=rmsprop\n--centered\n--alpha=0.5\n--eps=1e-3");
  const std::string labels("\0\0\x08\x01\0\0\0\x02\x03\x09", 10);
  seeds.Put("idx", Byte(2) + Byte(4) + labels);
  const std::string images("\0\0\x08\x03\0\0\0\x01\0\0\0\x02\0\0\0\x01\x07\x08", 18);
  seeds.Put("idx", Byte(3) + Byte(9) + images);
  seeds.Put("libsvm", Byte(0) + "# two classes\n+1 1:0.5 3:-2e1\n-1\n-1 2:3 # more\r\n");
  seeds.Put("libsvm", Byte(1) + "1 1:1\n2 2:1\n3 16777216:1");
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  if (argc != 2) {
    LOG(ERROR) << "expected a folder to write to";
    return 2;
  }
  sluice::Seeds seeds(argv[1]);
  sluice::PutEncodings(seeds);
  sluice::PutChunks(seeds);
  sluice::PutMessages(seeds);
  sluice::PutJoinParts(seeds);
  sluice::PutDurable(seeds);
  sluice::PutStripes(seeds);
  sluice::PutRows(seeds);
  sluice::PutCalls(seeds);
  sluice::PutTexts(seeds);
  sluice::PutModuleMessages(seeds);
  sluice::PutServerMessages(seeds);
  sluice::PutHistory(seeds);
}
