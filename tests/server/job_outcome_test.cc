#include "server/job_outcome.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

SessionRecord Worker(const std::string& name, Presence presence) {
  SessionRecord record;
  record.worker = name;
  record.host = "node1";
  record.pid = 12;
  record.presence = presence;
  record.joined = true;
  return record;
}

TEST(LostBeforeTest, NamesTheFirstWorkersThatASignalMayBeSentFor) {
  std::vector<SessionRecord> sessions = {Worker("a", Presence::kPresent),
                                         Worker("b", Presence::kLeft)};
  EXPECT_EQ(LostBefore(sessions), "");
  sessions.push_back(Worker("c", Presence::kLost));
  EXPECT_EQ(LostBefore(sessions),
            "; it had lost \"c\" (process 12 on node1), for which mpirun ends a job unless "
            "--max-restarts=N starts it again");
  for (int i = 0; i < 5; ++i) sessions.push_back(Worker(absl::StrCat("e", i), Presence::kEvicted));
  EXPECT_EQ(
      LostBefore(sessions),
      "; it had lost \"c\" (process 12 on node1); \"e0\" (process 12 on node1); \"e1\" "
      "(process 12 on node1); \"e2\" (process 12 on node1); and 2 more, for which mpirun ends "
      "a job unless --max-restarts=N starts it again");
}

}  // namespace
}  // namespace sluice
