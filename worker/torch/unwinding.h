// Tells a destructor whether an exception destroys its object.

#ifndef SLUICE_WORKER_TORCH_UNWINDING_H_
#define SLUICE_WORKER_TORCH_UNWINDING_H_

#include <exception>

namespace sluice {

// A member of the object. Used by one thread.
class Unwinding {
 public:
  // Whether an exception that was thrown after the object was made is under way. In the object's
  // destructor that means: the exception leaves the scope in which the object lives. An exception
  // that was under way already when the object was made does not count.
  bool IsUnderWay() const { return std::uncaught_exceptions() > before_; }

 private:
  const int before_ = std::uncaught_exceptions();
};

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_UNWINDING_H_
