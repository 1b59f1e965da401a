#include "worker/torch/threads.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>

#include "gtest/gtest.h"

namespace sluice {
namespace {

TEST(ThreadsTest, AreThoseOfLibTorchAndOfOpenBlas) {
  const auto of_blas = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "openblas_get_num_threads"));
  for (const int threads : {2, 1}) {
    SetThreads(threads);
    EXPECT_EQ(at::get_num_threads(), threads);
    if (of_blas != nullptr) {
      EXPECT_EQ(of_blas(), threads);
    }
  }
}

}  // namespace
}  // namespace sluice
