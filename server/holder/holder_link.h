// The sequencer's link to one holder.

#ifndef SLUICE_SERVER_HOLDER_HOLDER_LINK_H_
#define SLUICE_SERVER_HOLDER_HOLDER_LINK_H_

#include "server/holder/holder_commands.h"
#include "server/holder/holder_follower.h"

namespace sluice {

// One thread at a time calls it. Reports come to whom the link was made with.
class HolderLink {
 public:
  virtual ~HolderLink() = default;

  // Appends a command to the holder's log. A link to another server does not wait for it.
  virtual void Send(const HolderCommand& command) = 0;
};

// The link to the holder on the sequencer's own server: a direct call. The command has been
// executed, and has been reported on, when Send() returns.
class LocalLink final : public HolderLink {
 public:
  // `holder` outlives the link.
  explicit LocalLink(HolderFollower& holder) : holder_(holder) {}

  void Send(const HolderCommand& command) override { holder_.Execute(command); }

 private:
  HolderFollower& holder_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_HOLDER_HOLDER_LINK_H_
