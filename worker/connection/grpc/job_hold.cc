#include "worker/connection/grpc/job_hold.h"

#include <glog/logging.h>

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/error.h"
#include "common/base/thread_name.h"
#include "common/base/version.h"
#include "common/wire/chunk.h"
#include "common/wire/grpc_runtime.h"
#include "sluice/v1/parameter_server.pb.h"
#include "worker/connection/call_retry.h"
#include "worker/connection/grpc/call.h"
#include "worker/connection/grpc/dial.h"

namespace sluice {
namespace {

constexpr char kHoldJob[] = "/sluice.v1.ParameterServer/HoldJob";
constexpr absl::Duration kPause = absl::Seconds(1);  // between two looks, and two tries
constexpr absl::Duration kPeek = absl::Milliseconds(5);
constexpr absl::Duration kAnswer = absl::Seconds(5);  // the server answers at once

absl::Status Explained(const absl::Status& status) {
  if (!absl::IsUnimplemented(status)) return status;
  return absl::UnimplementedError(
      absl::StrCat("the server is too old for a job with several models; upgrade it to Sluice ",
                   kVersion, ", or train one model, without a name"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<JobHold>> JobHold::Open(const GrpcConnectionOptions& options) {
  KeepGrpcRunning();
  auto channel = DialChannel(options);
  if (!channel.ok()) return channel.status();
  auto hold = absl::WrapUnique(new JobHold(options.token, *std::move(channel)));
  const absl::Status begun = hold->Begin();
  if (!begun.ok()) return Explained(begun);
  hold->thread_ = std::thread([&hold = *hold] { hold.Run(); });
  return hold;
}

JobHold::JobHold(const std::string& token, GrpcChannel channel)
    : token_(token), channel_(std::move(channel)) {}

JobHold::~JobHold() {
  stop_.Raise();
  if (thread_.joinable()) thread_.join();
}

// Opens the call on the channel, which is connected.
absl::Status JobHold::Begin() {
  stub_ = std::make_unique<grpc::GenericStub>(channel_.get());
  call_ = std::make_unique<GrpcStream>(*stub_, kHoldJob, absl::InfiniteDuration(),
                                       CallMetadata{token_});
  call_->Write(EncodeMessage(v1::HoldJobRequest()), Follows::kNothing);
  if (!call_->AwaitAnswer(kAnswer)) {
    return absl::UnavailableError(
        absl::StrCat("the server has not answered HoldJob within ", absl::FormatDuration(kAnswer)));
  }
  grpc::ByteBuffer bytes;
  if (!call_->Read(&bytes)) {
    const absl::Status end = EndOf(call_->Finish());
    return end.ok() ? absl::UnavailableError("the server goes down") : end;
  }
  v1::HoldJobResponse held;
  if (!DecodeMessage(bytes, &held)) return UnexpectedMessage("HoldJob", "HoldJobResponse");
  if (job_id_.empty()) job_id_ = held.job_id();
  if (job_id_ == held.job_id()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the server runs job ", Shown(held.job_id()),
                                                    " now, and this process is of job ", job_id_));
}

bool JobHold::IsOpen() {
  grpc::ByteBuffer more;
  return call_ != nullptr && (!call_->AwaitAnswer(kPeek) || call_->Read(&more));
}

void JobHold::Run() {
  NameThisThread("job-hold");
  while (!stop_.WaitFor(kPause)) {
    if (IsOpen()) continue;
    call_ = nullptr;
    if (!channel_.Connect(kPause).ok()) continue;
    const absl::Status begun = Begin();
    if (begun.ok()) continue;
    call_ = nullptr;
    const bool refused = absl::IsInvalidArgument(begun) || absl::IsUnimplemented(begun) ||
                         absl::IsFailedPrecondition(begun);
    if (!refused) continue;
    LOG(WARNING) << "this process does not hold the job any more, which may end between two of its "
                    "models: "
                 << Explained(begun).message();
    return;
  }
}

}  // namespace sluice
