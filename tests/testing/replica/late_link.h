// Links to a replica on another server, of which nothing happens by itself: a test calls Act(). Of
// one, messages are late and come twice, and its connection breaks; of the other they come in turn.

#ifndef SLUICE_TESTS_TESTING_REPLICA_LATE_LINK_H_
#define SLUICE_TESTS_TESTING_REPLICA_LATE_LINK_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <random>
#include <utility>

#include "server/replica/ordered_messages.h"
#include "server/replica/replica_link.h"

namespace sluice {

// One direction of a link.
template <typename Message>
class LateChannel {
 public:
  // `take` gets each message once, and in order.
  LateChannel(std::mt19937& dice, std::function<void(const Message&)> take)
      : dice_(dice), take_(std::move(take)) {}

  void Send(const Message& message) { on_way_.push_back(sender_.Add(message)); }

  // A message comes or comes again, an acknowledgement comes, or the connection breaks: then all
  // that is not acknowledged is sent again, and what was on its way may come later.
  void Act() {
    const uint32_t roll = dice_() % 16;
    if (roll == 0) {
      if (dice_() % 2 == 0) on_way_.clear();
      for (const auto& message : sender_.kept()) on_way_.push_back(message);
    } else if (roll < 4) {
      sender_.Acknowledge(receiver_.taken());
    } else if (!on_way_.empty()) {
      // The first to be sent is the first to come, unless it is of an earlier connection.
      const size_t which = roll < 6 ? dice_() % on_way_.size() : 0;
      const auto message = on_way_[which];
      if (roll != 6) on_way_.erase(on_way_.begin() + static_cast<ptrdiff_t>(which));
      if (receiver_.Take(message.number)) take_(message.message);
    } else if (!sender_.kept().empty()) {
      on_way_.push_back(sender_.kept().front());  // its time is over, so it is sent again
    }
  }

  bool idle() const { return sender_.kept().empty(); }

 private:
  std::mt19937& dice_;
  const std::function<void(const Message&)> take_;
  OrderedSender<Message> sender_;
  OrderedReceiver receiver_;
  std::deque<typename OrderedSender<Message>::Numbered> on_way_;
};

class TestLink : public ReplicaLink {
 public:
  virtual void Report(const ReplicaReport& report) = 0;
  virtual void Act() = 0;
  virtual bool idle() const = 0;  // nothing can come
  bool silent() const override { return false; }
};

class LateLink final : public TestLink {
 public:
  // `execute` gets the commands, and `report` what Report() was told.
  LateLink(std::mt19937& dice, std::function<void(const ReplicaCommand&)> execute,
           std::function<void(const ReplicaReport&)> report)
      : dice_(dice), commands_(dice, std::move(execute)), reports_(dice, std::move(report)) {}
  // `replica` gets the commands. It outlives the link.
  LateLink(std::mt19937& dice, Replica& replica, std::function<void(const ReplicaReport&)> report)
      : LateLink(
            dice, [&replica](const ReplicaCommand& command) { replica.Execute(command); },
            std::move(report)) {}

  void Send(const ReplicaCommand& command) override { commands_.Send(command); }
  void Report(const ReplicaReport& report) override { reports_.Send(report); }

  void Act() override { dice_() % 2 == 0 ? commands_.Act() : reports_.Act(); }
  bool idle() const override { return commands_.idle() && reports_.idle(); }

 private:
  std::mt19937& dice_;
  LateChannel<ReplicaCommand> commands_;
  LateChannel<ReplicaReport> reports_;
};

class PromptLink final : public TestLink {
 public:
  PromptLink(std::function<void(const ReplicaCommand&)> execute,
             std::function<void(const ReplicaReport&)> report)
      : execute_(std::move(execute)), report_(std::move(report)) {}

  void Send(const ReplicaCommand& command) override {
    on_way_.push_back([this, command] { execute_(command); });
  }
  void Report(const ReplicaReport& report) override {
    on_way_.push_back([this, report] { report_(report); });
  }
  void Act() override {
    const auto come = std::move(on_way_.front());
    on_way_.pop_front();
    come();
  }
  bool idle() const override { return held_ || on_way_.empty(); }
  // From now on nothing comes, or it does again.
  void Hold(bool hold) { held_ = hold; }
  bool silent() const override { return held_; }

 private:
  const std::function<void(const ReplicaCommand&)> execute_;
  const std::function<void(const ReplicaReport&)> report_;
  std::deque<std::function<void()>> on_way_;
  bool held_ = false;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_REPLICA_LATE_LINK_H_
