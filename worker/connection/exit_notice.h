// What a part of this process still has to tell others when the process ends by exit().

#ifndef SLUICE_WORKER_CONNECTION_EXIT_NOTICE_H_
#define SLUICE_WORKER_CONNECTION_EXIT_NOTICE_H_

#include <functional>

namespace sluice {

// While it exists, exit() calls `tell` with the exit code, in the thread that calls exit(); so does
// a return from main(). A process that ends by a signal, abort() or _exit() does not call it, nor
// does one that was forked after the notice was made. A `tell` may still run when the notice is
// destroyed by another thread, so it owns what it uses. Any thread may make and destroy notices.
class ExitNotice {
 public:
  explicit ExitNotice(std::function<void(int code)> tell);
  ~ExitNotice();

  ExitNotice(const ExitNotice&) = delete;
  ExitNotice& operator=(const ExitNotice&) = delete;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_EXIT_NOTICE_H_
