// The headers that nearly every test includes, compiled once for all of them
// (tools/bazel/precompiled/). A test includes what it needs all the same: this header only saves
// time.

#ifndef SLUICE_TESTS_PRECOMPILED_H_
#define SLUICE_TESTS_PRECOMPILED_H_

#include <fstream>
#include <set>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/bazel/precompiled/headers.h"

#endif  // SLUICE_TESTS_PRECOMPILED_H_
