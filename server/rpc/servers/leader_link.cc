#include "server/rpc/servers/leader_link.h"

#include <grpcpp/grpcpp.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/base/version.h"
#include "common/wire/field.h"
#include "common/wire/status.h"
#include "server/rpc/servers/command_messages.h"
#include "server/rpc/servers/leader_channel.h"
#include "server/rpc/servers/queued_stream.h"
#include "server/rpc/servers/report_messages.h"
#include "sluice/v1/sequencer.grpc.pb.h"

namespace sluice {
namespace {

using CallReactor = grpc::ClientBidiReactor<v1::HolderMessage, v1::SequencerMessage>;

v1::HolderHello HelloOf(const LeaderLinkOptions& options, ProcessNonce leader) {
  v1::HolderHello hello;
  hello.set_job_id(options.job_id);
  hello.set_index(options.index);
  hello.set_servers(options.servers);
  hello.set_process_nonce(options.process_nonce.value());
  hello.set_address(options.address);
  hello.set_saves(options.saves);
  hello.set_journals(options.journals);
  hello.set_version(kVersion);
  hello.set_sequencer_nonce(leader.value());
  hello.set_directory(options.found.directory);
  for (const FoundFile& file : options.found.files) {
    v1::HolderFile& put = *hello.add_files();
    put.set_name(file.name);
    put.set_job_id(file.job_id);
  }
  return hello;
}

}  // namespace

// One call. The link keeps it until the next one.
class LeaderLink::Stream final : public QueuedStream<CallReactor, v1::HolderMessage> {
 public:
  explicit Stream(LeaderLink& link) : link_(link) {}

  void Start(std::shared_ptr<grpc::Channel> channel, const std::string& token,
             std::shared_ptr<const v1::HolderMessage> hello) {
    channel_ = std::move(channel);
    if (!token.empty()) context_.AddMetadata("authorization", absl::StrCat("Bearer ", token));
    stub_ = v1::Sequencer::NewStub(channel_);
    stub_->async()->Follow(&context_, this);
    AddHold();  // reports are written at any time
    StartRead(&message_);
    Write(std::move(hello));
    StartCall();
  }

  void OnReadDone(bool ok) override {
    fault_ = ok ? Take() : absl::OkStatus();
    if (ok && fault_.ok()) return StartRead(&message_);
    if (!fault_.ok()) context_.TryCancel();
    StopWriting([this] { RemoveHold(); });
  }

  void OnDone(const grpc::Status& status) override {
    link_.End(fault_.ok() ? FromGrpcStatus(status) : fault_);
  }

  void Cancel() { context_.TryCancel(); }

 private:
  absl::Status Take() {
    auto whole = parts_.Add(std::exchange(message_, v1::SequencerMessage()));
    if (!whole.ok()) return whole.status();
    return whole->has_value() ? link_.Take(**whole) : absl::OkStatus();
  }

  LeaderLink& link_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Sequencer::Stub> stub_;
  grpc::ClientContext context_;
  v1::SequencerMessage message_;
  MessageParts<v1::SequencerMessage> parts_;
  absl::Status fault_;  // that this side has found
};

LeaderLink::LeaderLink(LeaderLinkOptions options,
                       std::function<void(const ReplicaCommand&)> execute)
    : options_(std::move(options)), execute_(std::move(execute)) {}

void LeaderLink::Stop() {
  std::shared_ptr<Stream> stream;
  {
    absl::MutexLock lock(&mu_);
    stream = stream_;
  }
  if (stream == nullptr) return;
  stream->Cancel();
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(
      +[](absl::optional<absl::Status>* ended) { return ended->has_value(); }, &ended_));
}

absl::Status LeaderLink::Call() {
  auto channel = MakeLeaderChannel(options_.target, options_.credentials);
  if (!channel.ok()) return channel.status();
  const auto stream = std::make_shared<Stream>(*this);
  v1::HolderMessage message;
  {
    absl::MutexLock lock(&mu_);
    stream_ = stream;
    ended_.reset();
    told_.reset();
    accepted_ = false;
    message.set_taken(end_.taken());
    *message.mutable_hello() = HelloOf(options_, leader_);
  }
  stream->Start(*std::move(channel), options_.token,
                std::make_shared<const v1::HolderMessage>(std::move(message)));
  return absl::OkStatus();
}

void LeaderLink::End(const absl::Status& why) {
  absl::MutexLock lock(&mu_);
  end_.End();
  accepted_ = false;
  const bool cancelled = why.ok() || absl::IsCancelled(why);  // as a server does that ends
  ended_ = cancelled ? absl::UnavailableError("the first server has ended the call") : why;
}

// ---- Messages ----

absl::Status LeaderLink::TakeHello(const v1::SequencerMessage& message) {
  absl::Status taken;
  {
    absl::MutexLock lock(&mu_);
    taken = Begin(message);
  }
  if (taken.ok() && options_.begin) {
    options_.begin(message.hello().job_id(), SessionId(message.hello().session_base()));
  }
  return taken;
}

absl::Status LeaderLink::Begin(const v1::SequencerMessage& message) {
  if (accepted_) return BadField("hello", "sent twice", "only the first message");
  if (!message.has_hello()) return BadField("hello", "absent", "the first message of the call");
  const ProcessNonce process(message.hello().process_nonce());
  if (leader_ != ProcessNonce() && leader_ != process) {
    return MakeError(Reason::kNotInitialized,
                     "the first server was started again, and its part of the parameters is lost; "
                     "the job cannot go on");
  }
  leader_ = process;
  accepted_ = true;
  return end_.Begin(*stream_, message.taken());
}

absl::Status LeaderLink::Take(const v1::SequencerMessage& message) {
  if (message.has_hello() || !accepted()) return TakeHello(message);
  absl::StatusOr<ReplicaCommand> command;
  {
    absl::MutexLock lock(&mu_);
    const absl::Status heard = end_.Hear(message.taken());
    if (!heard.ok() || message.number() == 0) return heard;
    command = FromProto(message);
    if (!command.ok()) return command.status();
    if (!end_.Take(message.number())) return absl::OkStatus();
    const absl::Status stands = check_.Take(*command);
    if (!stands.ok()) return stands;
  }
  execute_(*command);
  return absl::OkStatus();
}

void LeaderLink::Report(const ReplicaReport& report) {
  absl::MutexLock lock(&mu_);
  check_.Note(report);
  end_.Send(ToProto(report));
}

void LeaderLink::Acknowledge() {
  absl::optional<StripeFigures> figures;
  if (options_.figures) figures = options_.figures();
  absl::MutexLock lock(&mu_);
  if (accepted_ && figures.has_value() && figures != told_) {
    TellFigures(*figures);
  } else {
    end_.Tell(v1::HolderMessage());
  }
}

void LeaderLink::TellFigures(const StripeFigures& figures) {
  v1::HolderMessage message;
  *message.mutable_figures() = ToProto(figures);
  if (end_.Tell(std::move(message))) told_ = figures;
}

absl::optional<absl::Status> LeaderLink::ended() const {
  absl::MutexLock lock(&mu_);
  return ended_;
}

bool LeaderLink::accepted() const {
  absl::MutexLock lock(&mu_);
  return accepted_;
}

}  // namespace sluice
