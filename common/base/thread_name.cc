#include "common/base/thread_name.h"

#include <pthread.h>

namespace sluice {

void NameThisThread(const std::string& name) {
  if (!name.empty()) pthread_setname_np(pthread_self(), name.c_str());
}

}  // namespace sluice
