#include "common/wire/status.h"

#include <string>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/tensor/layout.h"
#include "gmock/gmock.h"
#include "google/rpc/error.pb.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

constexpr std::pair<absl::StatusCode, grpc::StatusCode> kCodes[] = {
    {absl::StatusCode::kCancelled, grpc::StatusCode::CANCELLED},
    {absl::StatusCode::kUnknown, grpc::StatusCode::UNKNOWN},
    {absl::StatusCode::kInvalidArgument, grpc::StatusCode::INVALID_ARGUMENT},
    {absl::StatusCode::kDeadlineExceeded, grpc::StatusCode::DEADLINE_EXCEEDED},
    {absl::StatusCode::kNotFound, grpc::StatusCode::NOT_FOUND},
    {absl::StatusCode::kAlreadyExists, grpc::StatusCode::ALREADY_EXISTS},
    {absl::StatusCode::kPermissionDenied, grpc::StatusCode::PERMISSION_DENIED},
    {absl::StatusCode::kResourceExhausted, grpc::StatusCode::RESOURCE_EXHAUSTED},
    {absl::StatusCode::kFailedPrecondition, grpc::StatusCode::FAILED_PRECONDITION},
    {absl::StatusCode::kAborted, grpc::StatusCode::ABORTED},
    {absl::StatusCode::kOutOfRange, grpc::StatusCode::OUT_OF_RANGE},
    {absl::StatusCode::kUnimplemented, grpc::StatusCode::UNIMPLEMENTED},
    {absl::StatusCode::kInternal, grpc::StatusCode::INTERNAL},
    {absl::StatusCode::kUnavailable, grpc::StatusCode::UNAVAILABLE},
    {absl::StatusCode::kDataLoss, grpc::StatusCode::DATA_LOSS},
    {absl::StatusCode::kUnauthenticated, grpc::StatusCode::UNAUTHENTICATED},
};

constexpr char kRetryAfter[] = "sluice/retry_after";

google::rpc::ErrorInfo Info(const std::string& reason, const std::string& domain) {
  google::rpc::ErrorInfo info;
  info.set_reason(reason);
  info.set_domain(domain);
  return info;
}

// Details as they travel, with `infos` in them.
std::string Details(const std::vector<google::rpc::ErrorInfo>& infos) {
  google::rpc::Status details;
  for (const google::rpc::ErrorInfo& info : infos) details.add_details()->PackFrom(info);
  return details.SerializeAsString();
}

// The reason in an error from a peer that sent `details`.
Reason ReasonIn(const std::string& details) {
  const absl::Status status =
      FromGrpcStatus(grpc::Status(grpc::StatusCode::ABORTED, "message", details));
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(status.message(), "message");
  return ReasonOf(status);
}

absl::Status ThereAndBack(const absl::Status& status) {
  return FromGrpcStatus(ToGrpcStatus(status));
}

TEST(WireStatusTest, OkIsOk) {
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok());
  EXPECT_EQ(FromGrpcStatus(grpc::Status::OK), absl::OkStatus());
}

TEST(WireStatusTest, CodesAreTheSameOnBothSides) {
  for (const auto& [ours, theirs] : kCodes) {
    EXPECT_EQ(ToGrpcStatus(absl::Status(ours, "message")).error_code(), theirs);
    EXPECT_EQ(FromGrpcStatus(grpc::Status(theirs, "message")), absl::Status(ours, "message"));
  }
}

TEST(WireStatusTest, EveryReasonSurvivesTheRoundTrip) {
  for (int i = 1; i <= static_cast<int>(Reason::kDiverged); ++i) {
    const absl::Status status = MakeError(static_cast<Reason>(i), "what was seen, what to do");
    EXPECT_EQ(ThereAndBack(status), status);
    EXPECT_EQ(ReasonOf(ThereAndBack(status)), static_cast<Reason>(i));
  }
}

TEST(WireStatusTest, WhenTheCallMaySucceedSurvivesTheRoundTrip) {
  absl::Status status = MakeError(Reason::kNameTaken, "taken");
  EXPECT_EQ(ThereAndBack(status).GetPayload(kRetryAfter), absl::nullopt);
  status.SetPayload(kRetryAfter, absl::Cord("4.8s"));
  EXPECT_EQ(ThereAndBack(status), status);
}

// What a peer says there is only taken if it is a time.
TEST(WireStatusTest, ATimeThatIsNoneIsLeftOut) {
  for (const char* text : {"", "soon", "-1s", "1", "9e99 s"}) {
    google::rpc::ErrorInfo info = Info("NAME_TAKEN", "sluice");
    (*info.mutable_metadata())["retry_after"] = text;
    const absl::Status status = FromGrpcStatus(
        grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "taken", Details({info})));
    EXPECT_EQ(ReasonOf(status), Reason::kNameTaken) << text;
    EXPECT_EQ(status.GetPayload(kRetryAfter), absl::nullopt) << text;
  }
}

TEST(WireStatusTest, AnErrorWithoutReasonSurvivesTheRoundTripWithoutDetails) {
  const absl::Status status = absl::UnavailableError("connection reset");
  EXPECT_EQ(ToGrpcStatus(status).error_details(), "");
  EXPECT_EQ(ThereAndBack(status), status);
}

TEST(WireStatusTest, DetailsAreThoseOfTheRicherErrorModel) {
  google::rpc::Status details;
  const grpc::Status status = ToGrpcStatus(MakeError(Reason::kLayoutMismatch, "conv1 differs"));
  ASSERT_TRUE(details.ParseFromString(status.error_details()));
  EXPECT_EQ(details.code(), 9);  // FAILED_PRECONDITION in google.rpc.Code
  EXPECT_EQ(details.message(), "conv1 differs");
  ASSERT_EQ(details.details_size(), 1);
  EXPECT_EQ(details.details(0).type_url(), "type.googleapis.com/google.rpc.ErrorInfo");
  google::rpc::ErrorInfo info;
  ASSERT_TRUE(details.details(0).UnpackTo(&info));
  EXPECT_EQ(info.reason(), "LAYOUT_MISMATCH");
  EXPECT_EQ(info.domain(), "sluice");
}

// Protobuf carries no string that is not UTF-8, and the error shows a part of the name only.
TEST(WireStatusTest, TheReasonSurvivesANameCutWithinACharacter) {
  LayoutRange range;
  range.name = std::string(63, 'n') + "\xc3\xa9";
  range.shape = {3};
  const absl::Status status = Layout::Create({range}).status();
  EXPECT_EQ(ReasonOf(ThereAndBack(status)), Reason::kBadLayout);
  EXPECT_EQ(ThereAndBack(status), status);
}

TEST(WireStatusTest, FindsTheReasonAmongForeignDetails) {
  EXPECT_EQ(ReasonIn(Details({Info("BAD_TOKEN", "googleapis.com"), Info("DRAINING", "sluice")})),
            Reason::kDraining);
  google::rpc::Status details;
  details.add_details()->PackFrom(google::rpc::Status());
  details.add_details()->PackFrom(Info("DRAINING", "sluice"));
  EXPECT_EQ(ReasonIn(details.SerializeAsString()), Reason::kDraining);
}

TEST(WireStatusTest, AReasonOfAnotherDomainIsNotOurs) {
  for (const char* domain : {"", "googleapis.com", "Sluice", "sluice.v1"}) {
    EXPECT_EQ(ReasonIn(Details({Info("BAD_TOKEN", domain)})), Reason::kNone) << domain;
  }
}

TEST(WireStatusTest, AnUnknownReasonIsNone) {
  EXPECT_EQ(ReasonIn(Details({Info("OF_THE_FUTURE", "sluice")})), Reason::kNone);
  EXPECT_EQ(ReasonIn(Details({Info("", "sluice")})), Reason::kNone);
}

TEST(WireStatusTest, GarbageInPlaceOfDetailsGivesNone) {
  EXPECT_EQ(ReasonIn(""), Reason::kNone);
  EXPECT_EQ(ReasonIn("BAD_TOKEN"), Reason::kNone);
  EXPECT_EQ(ReasonIn(std::string(1000, '\xff')), Reason::kNone);
  EXPECT_EQ(ReasonIn(std::string(1000, '\0')), Reason::kNone);
}

TEST(WireStatusTest, CutDetailsGiveNone) {
  const std::string details = Details({Info("BAD_TOKEN", "sluice")});
  EXPECT_EQ(ReasonIn(details), Reason::kBadToken);
  for (size_t size = 0; size < details.size(); ++size) {
    EXPECT_EQ(ReasonIn(details.substr(0, size)), Reason::kNone) << size;
  }
}

TEST(WireStatusTest, AnUnknownCodeFromThePeerIsAnError) {
  const absl::Status status = FromGrpcStatus(grpc::Status(grpc::StatusCode::DO_NOT_USE, "message"));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnknown);
  EXPECT_EQ(status.message(), "message");
}

}  // namespace
}  // namespace sluice
