// The commit that a program was built from. BUILD.bazel says which builds know it.

#ifndef SLUICE_COMMON_BASE_COMMIT_H_
#define SLUICE_COMMON_BASE_COMMIT_H_

namespace sluice {

extern const char kCommit[];  // "unknown" where the build was not told

}  // namespace sluice

#endif  // SLUICE_COMMON_BASE_COMMIT_H_
