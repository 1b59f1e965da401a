// Calls a function when this process exits, so that a part of the process can tell others about it.

#ifndef SLUICE_WORKER_CONNECTION_EXIT_NOTICE_H_
#define SLUICE_WORKER_CONNECTION_EXIT_NOTICE_H_

#include <functional>

namespace sluice {

// As long as the object exists, exit() and a return from main() call `tell` with the exit code, in
// the thread that ends the process. Nothing calls `tell` if the process is ended by a signal,
// abort() or _exit(). A process that was forked after the object was made does not call it either.
//
// Another thread may destroy the object while `tell` runs. So `tell` must own what it uses. Any
// thread may make and destroy such objects.
class ExitNotice {
 public:
  explicit ExitNotice(std::function<void(int code)> tell);
  ~ExitNotice();

  ExitNotice(const ExitNotice&) = delete;
  ExitNotice& operator=(const ExitNotice&) = delete;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_EXIT_NOTICE_H_
