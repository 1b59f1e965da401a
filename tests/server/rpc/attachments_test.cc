// What comes with a push, from a worker's program to one of the server's, over real gRPC.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/outcome.h"
#include "tests/testing/server/server_world.h"
#include "tests/testing/shard/shard_connection.h"
#include "tests/testing/status.h"
#include "worker/client/parameter_client.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A server whose program notes what comes, and a worker "a".
class AttachmentsTest : public ::testing::Test {
 protected:
  static ShardOptions Options(std::vector<std::string>* told) {
    ShardOptions options = Sync(1);
    options.on_attachments = [told](const std::string& worker, Step step,
                                    const Attachments& attachments) {
      for (const Attachment& attachment : attachments) {
        told->push_back(absl::StrCat(worker, " at ", step.value(), ": ", attachment.type, "=",
                                     attachment.data));
      }
    };
    return options;
  }

  void Join() {
    ASSERT_THAT(world_.Join("a"), IsOk());
    ASSERT_THAT(world_.Initialize("a", {1, 1, 1}), IsOk());
  }

  v1::PushHeader HeaderWith(const Attachments& attachments, uint64_t step = 0) {
    v1::PushHeader header = world_.NextHeader("a", step);
    for (const Attachment& attachment : attachments) {
      v1::Attachment& message = *header.add_attachments();
      message.set_type(attachment.type);
      message.set_data(attachment.data);
    }
    return header;
  }

  absl::StatusOr<PushOutcome> Push(const v1::PushHeader& header) {
    return world_.SendPush({HeaderOf(header), GradientOf(0, {1, 1, 1})});
  }

  static JoinRequest Request() {
    JoinRequest request;
    request.worker = "a";
    request.process_nonce = ProcessNonce(7);
    request.layout = ParametersOnly(3);
    request.optimizer.options = SgdOptions{1.0};
    return request;
  }

  std::string Listed() {
    v1::ListWorkersResponse response;
    const auto context = world_.Context();
    EXPECT_TRUE(world_.inspector().ListWorkers(context.get(), {}, &response).ok());
    std::string text;
    for (const v1::AttachmentSize& attachment : response.workers(0).attachments()) {
      absl::StrAppend(&text, attachment.type(), ":", attachment.bytes(), " ");
    }
    return text;
  }

  std::vector<std::string> told_;
  ServerWorld world_{Options(&told_)};
};

TEST_F(AttachmentsTest, AreToldToTheServersProgramAndListedByTypeAndSize) {
  Join();
  EXPECT_EQ(Listed(), "");
  ASSERT_THAT(Push(HeaderWith({{"loss.v1", "0.5"}, {"empty", ""}})), Applied(1));
  EXPECT_THAT(told_, ElementsAre("a at 0: loss.v1=0.5", "a at 0: empty="));
  EXPECT_EQ(Listed(), "loss.v1:3 empty:0 ");
  ASSERT_THAT(Push(HeaderWith({}, 1)), Applied(2));
  EXPECT_EQ(told_.size(), 2u);
  EXPECT_EQ(Listed(), "loss.v1:3 empty:0 ");
}

TEST_F(AttachmentsTest, OfARepeatedPushAreToldOnce) {
  Join();
  const v1::PushHeader header = HeaderWith({{"loss.v1", "0.5"}});
  ASSERT_THAT(Push(header), Applied(1));
  ASSERT_THAT(Push(header), IsOk());
  EXPECT_EQ(told_.size(), 1u);
}

TEST_F(AttachmentsTest, OfAPushThatIsRefusedAreNotTold) {
  Join();
  const auto refused =
      world_.SendPush({HeaderOf(HeaderWith({{"loss.v1", "0.5"}})), GradientOf(0, {1, 1})});
  EXPECT_FALSE(refused.ok());
  EXPECT_THAT(told_, IsEmpty());
  EXPECT_EQ(Listed(), "");
}

TEST_F(AttachmentsTest, AreFewAndSmall) {
  Join();
  const Attachments most(kMostAttachments,
                         {std::string(kLongestAttachmentType, 't'),
                          std::string(kMostAttachedBytes / kMostAttachments, 'x')});
  ASSERT_THAT(Push(HeaderWith(most)), Applied(1));

  Attachments many = most;
  many.push_back({"one", ""});
  Attachments large = most;
  large[0].data += "x";
  const std::pair<Attachments, const char*> refused[] = {
      {many, "a push has 9 attachments, expected at most 8; send the others with the next"},
      {large, "65537 bytes together, expected at most 65536; store them elsewhere"},
      {{{"", "x"}}, "type has 0 bytes, expected 1 to 64"},
      {{{std::string(65, 't'), "x"}}, "type has 65 bytes, expected 1 to 64"}};
  for (const auto& [attachments, says] : refused) {
    EXPECT_THAT(Push(HeaderWith(attachments, 1)).status(),
                IsError(Reason::kBadArgument, HasSubstr(says)));
  }
}

TEST_F(AttachmentsTest, GoWithTheWorkersNextPushAlsoIfItIsRepeated) {
  ParameterClient client = [this] {
    auto connection = std::make_unique<ShardConnection>(world_.shard());
    connection->LoseAnswers(1);
    return ParameterClient(std::move(connection));
  }();
  Values values = {1, 1, 1};
  ASSERT_THAT(client.Join(Request(), absl::MakeSpan(values)), IsOk());
  EXPECT_THAT(client.Attach({"", "x"}), IsError(Reason::kBadArgument, HasSubstr("0 bytes")));
  ASSERT_THAT(client.Attach({"loss.v1", "0.5"}), IsOk());
  for (int round = 0; round < 2; ++round) {
    ASSERT_THAT(client.PushPull(Share(Values{1, 1, 1}), 1, absl::nullopt, absl::MakeSpan(values)),
                IsOk());
  }
  EXPECT_THAT(told_, ElementsAre("a at 0: loss.v1=0.5"));
  ASSERT_THAT(client.Leave({}), IsOk());
}

TEST_F(AttachmentsTest, OfAPushThatIsGivenUpGoWithTheNext) {
  ParameterClient client(std::make_unique<ShardConnection>(world_.shard()));
  Values values = {1, 1, 1};
  ASSERT_THAT(client.Join(Request(), absl::MakeSpan(values)), IsOk());
  ASSERT_THAT(client.Attach({"loss.v1", "0.5"}), IsOk());
  const SharedFloats gradient = Share(Values{1, 1, 1});
  client.SendEarly(0, gradient.Part(0, 1));
  client.GiveUpEarly();
  EXPECT_THAT(told_, IsEmpty());
  ASSERT_THAT(client.PushPull(gradient, 1, absl::nullopt, absl::MakeSpan(values)), IsOk());
  EXPECT_THAT(told_, ElementsAre("a at 0: loss.v1=0.5"));
  ASSERT_THAT(client.Leave({}), IsOk());
}

}  // namespace
}  // namespace sluice
