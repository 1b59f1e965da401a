#include "tools/ctl/top/top.h"

#include <csignal>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "tools/ctl/top/state_sampler.h"
#include "tools/ctl/top/top_screen.h"
#include "tools/ctl/top/top_view.h"

namespace sluice {
namespace {

// The longest pause in which neither a signal nor a new sample is seen.
constexpr absl::Duration kLook = absl::Milliseconds(100);

// The time in which a server answers. If it takes longer, the screen says that it is old.
constexpr absl::Duration kTimely = absl::Seconds(2);

volatile std::sig_atomic_t stop_signal = 0;

// Notes the signals that end a program, as long as it lives.
class NotedSignals {
 public:
  NotedSignals() {
    stop_signal = 0;
    struct sigaction noted = {};
    noted.sa_handler = [](int number) { stop_signal = number; };
    for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &noted, &before_[i]);
  }
  ~NotedSignals() {
    for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  }

  NotedSignals(const NotedSignals&) = delete;
  NotedSignals& operator=(const NotedSignals&) = delete;

 private:
  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction before_[std::size(kSignals)] = {};
};

// Gives the view what has come. Returns the error that ends the loop, if one does.
class Feeder {
 public:
  Feeder(StateSampler& sampler, const TopOptions& options)
      : sampler_(sampler),
        patience_(options.patience),
        timely_(options.interval + kTimely),
        reached_(RealClock().Now()) {}

  absl::Status Feed(TopView& view) {
    auto sample = sampler_.Take();
    const absl::Time now = RealClock().Now();
    if (!sample.has_value()) {
      NoteSilence(now - reached_, view);
      return absl::OkStatus();
    }
    failed_ = !sample->ok();
    if (!failed_) {
      reached_ = now;
      view.Take(**std::move(sample));
      return absl::OkStatus();
    }
    const absl::Status status = sample->status();
    if (!absl::IsUnavailable(status) || now - reached_ > patience_) return status;
    view.SetTrouble(absl::StrCat(status.message(), "; trying again"));
    return absl::OkStatus();
  }

 private:
  // An error that the view shows says more.
  void NoteSilence(absl::Duration silent, TopView& view) const {
    if (failed_ || silent <= timely_) return;
    view.SetTrouble(absl::StrCat("no answer for ", absl::ToInt64Seconds(silent), " s; waiting"));
  }

  StateSampler& sampler_;
  const absl::Duration patience_;
  const absl::Duration timely_;
  bool failed_ = false;  // to ask last
  absl::Time reached_;   // when the server answered last
};

absl::Status Loop(TopScreen& screen, Feeder& feeder, TopView& view) {
  for (bool goes_on = true; goes_on && stop_signal == 0;) {
    const absl::Status fed = feeder.Feed(view);
    if (!fed.ok()) return fed;
    screen.Draw(view.Render(screen.height(), screen.width()));
    const auto key = screen.ReadKey(kLook);
    goes_on = !key.has_value() || view.Press(*key);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunTop(std::unique_ptr<OperatorClient> client, const TopOptions& options) {
  TopView view(client->address(), options.sort);
  absl::Status ended;
  {
    const NotedSignals signals;
    const auto screen = TopScreen::Open();
    if (!screen.ok()) return screen.status();
    StateSampler sampler(std::move(client), options.interval);
    Feeder feeder(sampler, options);
    ended = Loop(**screen, feeder, view);
  }
  if (stop_signal != 0 && stop_signal != SIGINT) raise(stop_signal);
  return ended;
}

}  // namespace sluice
