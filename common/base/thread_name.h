// The names of threads, as top, gdb and perf show them.

#ifndef SLUICE_COMMON_BASE_THREAD_NAME_H_
#define SLUICE_COMMON_BASE_THREAD_NAME_H_

#include <string>

namespace sluice {

// Names the calling thread; of a longer name Linux keeps nothing, so it has at most 15 characters.
// Does nothing if it is empty.
void NameThisThread(const std::string& name);

}  // namespace sluice

#endif  // SLUICE_COMMON_BASE_THREAD_NAME_H_
