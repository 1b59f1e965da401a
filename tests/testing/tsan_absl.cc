// Tells ThreadSanitizer of Abseil's locks.
//
// The distribution's Abseil is not instrumented: without this, TSan sees no order between one
// Unlock() and the next Lock(), and reports every guarded field. A test that links this calls the
// functions below in place of the library's; most tell TSan and then call the library's own.
// Covered is what the core and its tests use: Mutex's Lock, Unlock and LockWhen, hence MutexLock,
// its Await and AwaitWithTimeout, CondVar's Wait and WaitWithDeadline, and Notification. Without
// TSan this file is empty.

#if defined(__SANITIZE_THREAD__)
#define SLUICE_TSAN
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SLUICE_TSAN
#endif
#endif

#ifdef SLUICE_TSAN

#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "absl/base/config.h"
#include "absl/base/options.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"

#define SLUICE_QUOTE(name) #name
#define SLUICE_QUOTE_VALUE(macro) SLUICE_QUOTE(macro)

namespace {

std::string Mangled(const std::string& name) { return std::to_string(name.size()) + name; }

// The library's own absl::TYPE::METHOD(); `arguments` are their mangled types.
void* Original(const char* type, const char* method, const std::string& arguments = "v") {
  const std::string space = ABSL_OPTION_USE_INLINE_NAMESPACE
                                ? Mangled(SLUICE_QUOTE_VALUE(ABSL_OPTION_INLINE_NAMESPACE_NAME))
                                : "";
  const std::string symbol =
      std::string("_ZN4absl") + space + Mangled(type) + Mangled(method) + "E" + arguments;
  void* const function = dlsym(RTLD_NEXT, symbol.c_str());
  if (function == nullptr) {
    std::fprintf(stderr, "TSan needs Abseil as shared libraries: no %s\n", symbol.c_str());
    std::abort();
  }
  return function;
}

// A type of Abseil's among the arguments: a substitution of the mangling.
std::string InAbsl(const char* type) {
  return (ABSL_OPTION_USE_INLINE_NAMESPACE ? "NS0_" : "NS_") + Mangled(type) + "E";
}

template <typename Object>
void Call(void* function, Object* object) {
  reinterpret_cast<void (*)(Object*)>(function)(object);
}

}  // namespace

namespace absl {
ABSL_NAMESPACE_BEGIN

void Mutex::Lock() {
  static void* const original = Original("Mutex", "Lock");
  Call(original, this);
  __tsan_acquire(this);
}

void Mutex::Unlock() {
  static void* const original = Original("Mutex", "Unlock");
  __tsan_release(this);
  Call(original, this);
}

// The library lets other threads evaluate a condition, between locks that TSan does not see. So the
// waiter evaluates it by itself, again and again.
void Mutex::Await(const Condition& condition) {
  while (!condition.Eval()) {
    Unlock();
    std::this_thread::yield();
    Lock();
  }
}

bool Mutex::AwaitWithTimeout(const Condition& condition, Duration timeout) {
  const Time deadline = Now() + timeout;
  while (!condition.Eval() && Now() < deadline) {
    Unlock();
    std::this_thread::yield();
    Lock();
  }
  return condition.Eval();
}

void Mutex::LockWhen(const Condition& condition) {
  Lock();
  Await(condition);
}

void CondVar::Wait(Mutex* mu) {
  static void* const original = Original("CondVar", "Wait", "P" + InAbsl("Mutex"));
  __tsan_release(mu);
  reinterpret_cast<void (*)(CondVar*, Mutex*)>(original)(this, mu);
  __tsan_acquire(mu);
}

bool CondVar::WaitWithDeadline(Mutex* mu, Time deadline) {
  static void* const original =
      Original("CondVar", "WaitWithDeadline", "P" + InAbsl("Mutex") + InAbsl("Time"));
  __tsan_release(mu);
  const bool late =
      reinterpret_cast<bool (*)(CondVar*, Mutex*, Time)>(original)(this, mu, deadline);
  __tsan_acquire(mu);
  return late;
}

// Whoever notifies evaluates the waiters' conditions, too.
void Notification::Notify() { notified_yet_.store(true, std::memory_order_release); }

void Notification::WaitForNotification() const {
  while (!HasBeenNotified()) std::this_thread::yield();
}

bool Notification::WaitForNotificationWithTimeout(Duration timeout) const {
  const Time deadline = Now() + timeout;
  while (!HasBeenNotified() && Now() < deadline) std::this_thread::yield();
  return HasBeenNotified();
}

ABSL_NAMESPACE_END
}  // namespace absl

#endif  // SLUICE_TSAN
