// What readers of a feed get, whether they are fast or slow.

#include "server/web/http/http_feed.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

// A reader that remembers what happened to it.
struct Reader {
  HttpFeed& feed;
  uint64_t seen = 0;
  int parked = 0;
  int woken = 0;

  std::string Read() {
    const auto message = feed.Next(
        seen, [this] { ++parked; }, [this] { ++woken; });
    if (message.closed) return "closed";
    if (message.text == nullptr) return "nothing";
    seen = message.number;
    return *message.text;
  }
};

TEST(HttpFeedTest, GivesEachMessageOnceAndThenParksTheReader) {
  HttpFeed feed;
  Reader reader{feed};
  EXPECT_EQ(reader.Read(), "nothing");
  EXPECT_EQ(reader.parked, 1);
  feed.Publish("a");
  EXPECT_EQ(reader.woken, 1);
  EXPECT_EQ(reader.Read(), "a");
  EXPECT_EQ(reader.Read(), "nothing");
  EXPECT_EQ(reader.parked, 2);
  EXPECT_EQ(reader.woken, 1);
}

TEST(HttpFeedTest, AReaderThatIsSlowGetsTheNewestMessageOnly) {
  HttpFeed feed;
  Reader slow{feed};
  for (const char* text : {"a", "b", "c"}) feed.Publish(text);
  EXPECT_EQ(slow.Read(), "c");
  EXPECT_EQ(slow.Read(), "nothing");
}

TEST(HttpFeedTest, WakesEveryParkedReaderOnce) {
  HttpFeed feed;
  Reader first{feed};
  Reader second{feed};
  first.Read();
  second.Read();
  feed.Publish("a");
  feed.Publish("b");
  EXPECT_EQ(first.woken, 1);
  EXPECT_EQ(second.woken, 1);
}

TEST(HttpFeedTest, AClosedFeedWakesItsReadersAndParksNobody) {
  HttpFeed feed;
  Reader reader{feed};
  reader.Read();
  feed.Close();
  EXPECT_EQ(reader.woken, 1);
  EXPECT_EQ(reader.Read(), "closed");
  EXPECT_EQ(reader.parked, 1);
}

TEST(HttpFeedTest, TheLastMessageIsReadBeforeTheEnd) {
  HttpFeed feed;
  Reader parked{feed};
  Reader late{feed};
  parked.Read();
  feed.Publish("last");
  feed.Close();
  EXPECT_EQ(parked.woken, 1);
  EXPECT_EQ(parked.Read(), "last");
  EXPECT_EQ(parked.Read(), "closed");
  EXPECT_EQ(late.Read(), "last");
  EXPECT_EQ(late.Read(), "closed");
}

}  // namespace
}  // namespace sluice
