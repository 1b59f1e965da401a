// The terminal of `sluicectl top`, by ncurses.

#ifndef SLUICE_TOOLS_CTL_TOP_TOP_SCREEN_H_
#define SLUICE_TOOLS_CTL_TOP_TOP_SCREEN_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "tools/ctl/top/top_view.h"

namespace sluice {

// One at a time in a process, used by one thread. The destructor gives the terminal back as it was.
class TopScreen {
 public:
  // Takes over the terminal of stdin and stdout. INVALID_ARGUMENT if there is none, or if it is of
  // an unknown kind.
  static absl::StatusOr<std::unique_ptr<TopScreen>> Open();
  virtual ~TopScreen() = default;

  virtual int height() const = 0;  // now, in lines
  virtual int width() const = 0;
  virtual void Draw(const std::vector<TopLine>& lines) = 0;

  // Waits for a key; absent after `longest`, after a change of the terminal's size, or if a signal
  // has come.
  virtual absl::optional<TopKey> ReadKey(absl::Duration longest) = 0;
};

}  // namespace sluice

#endif  // SLUICE_TOOLS_CTL_TOP_TOP_SCREEN_H_
