#include "common/launch/job_ticket.h"

#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

MATCHER_P3(IsTicket, address, job_id, token, "") {
  return arg.address == address && arg.job_id == job_id && arg.token == token;
}

auto IsNoTicket() {
  return HasCode(absl::StatusCode::kDataLoss, HasSubstr("bytes that are no job ticket"));
}

TEST(JobTicketTest, ReachesOtherRanksWhole) {
  EXPECT_THAT(DecodeTicket(EncodeTicket(JobTicket{"node7:7070", "job-1", "secret"})),
              IsOkAndHolds(IsTicket("node7:7070", "job-1", "secret")));
}

TEST(JobTicketTest, MayLackJobAndToken) {
  EXPECT_THAT(DecodeTicket(EncodeTicket(JobTicket{"unix:/run/socket", "", ""})),
              IsOkAndHolds(IsTicket("unix:/run/socket", "", "")));
}

TEST(JobTicketTest, CarriesBytesThatAreNoText) {
  const std::string token("\xff\x00\xc3", 3);
  EXPECT_THAT(DecodeTicket(EncodeTicket(JobTicket{"unix:/\xe9", "", token})),
              IsOkAndHolds(IsTicket("unix:/\xe9", "", token)));
}

TEST(JobTicketTest, CarriesTheCredentialsOfItsWorkers) {
  JobTicket ticket{"node7:7070", "job-1", "secret"};
  ticket.credentials = {"certificate", "key", "authority"};
  const auto read = DecodeTicket(EncodeTicket(ticket));
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read->credentials.certificate, "certificate");
  EXPECT_EQ(read->credentials.key, "key");
  EXPECT_EQ(read->credentials.authority, "authority");
}

TEST(JobTicketTest, SaysWhichRanksServe) {
  JobTicket ticket{"node7:7070", "job-1", "secret"};
  EXPECT_THAT(DecodeTicket(EncodeTicket(ticket))->server_ranks, ElementsAre(0));
  ticket.server_ranks = {0, 4, 1000};
  EXPECT_THAT(DecodeTicket(EncodeTicket(ticket))->server_ranks, ElementsAre(0, 4, 1000));
}

TEST(JobTicketTest, RefusesRanksThatCannotServe) {
  for (const std::vector<uint32_t>& ranks :
       std::vector<std::vector<uint32_t>>{{}, {1, 2}, {0, 0}, {0, 4, 2}}) {
    JobTicket ticket{"node7:7070", "job-1", "secret"};
    ticket.server_ranks = ranks;
    EXPECT_THAT(DecodeTicket(EncodeTicket(ticket)), IsNoTicket());
  }
}

TEST(JobTicketTest, RefusesForeignBytes) {
  for (const char* bytes : {"", "node7:7070", "\xff\xff\xff\xff", "{\"address\": \"x\"}"}) {
    EXPECT_THAT(DecodeTicket(bytes), IsNoTicket()) << bytes;
  }
  EXPECT_THAT(DecodeTicket(std::string(100, '\0')), IsNoTicket());
}

TEST(JobTicketTest, RefusesATicketCutWithinItsAddress) {
  const std::string bytes = EncodeTicket(JobTicket{"node7:7070", "job-1", "secret"});
  const size_t address_end = bytes.find("7070") + 4;
  for (size_t size = 0; size < address_end; ++size) {
    EXPECT_THAT(DecodeTicket(bytes.substr(0, size)), IsNoTicket()) << size;
  }
}

// Whatever the bytes are, the answer is a ticket with an address or an error.
TEST(JobTicketTest, SurvivesEveryChangedByte) {
  const std::string bytes = EncodeTicket(JobTicket{"node7:7070", "job-1", "secret"});
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (int value = 0; value < 256; ++value) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(value);
      const auto ticket = DecodeTicket(changed);
      if (ticket.ok()) {
        EXPECT_NE(ticket->address, "");
      } else {
        EXPECT_THAT(ticket, IsNoTicket());
      }
    }
  }
}

}  // namespace
}  // namespace sluice
