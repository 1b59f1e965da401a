/* A worker in plain C whose model has a weight, a running mean and a constant. In each of STEPS
 * steps it pushes a batch that has 0, which halves the mean. c_test.py starts it. */

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "worker/c/sluice.h"

static int Fail(const char* what) {
  fprintf(stderr, "%s: [%s] ", what, sluice_error_reason());
  return sluice_report_error("mean_worker");
}

static sluice_code Wait(sluice_client* client) { return sluice_wait(client, SLUICE_FOREVER, NULL); }

/* What is refused before the client joins. Returns 0 if it is. */
static int Misuse(sluice_client* client) {
  const sluice_running_mean parameter = {0, 1, 0.5f};
  const sluice_running_mean endless = {1, UINT64_MAX, 0.5f};
  const sluice_running_mean growing = {1, 1, 1.5f};
  const sluice_constant untyped = {"process", NULL, 0, NULL, NULL};
  const sluice_constant nowhere = {"process", NULL, 0, "I64", NULL};
  const sluice_constant odd = {"process", NULL, 0, "I65", NULL};
  if (sluice_keep_running_means(client, &parameter, 1) == SLUICE_OK) return 10;
  printf("parameter: %s\n", sluice_error_message());
  if (sluice_keep_running_means(client, &endless, 1) == SLUICE_OK) return 10;
  printf("endless: %s\n", sluice_error_message());
  if (sluice_keep_running_means(client, &growing, 1) == SLUICE_OK) return 10;
  printf("growing: %s\n", sluice_error_message());
  if (sluice_set_running_means(client, NULL, 0) != SLUICE_FAILED_PRECONDITION) return 10;
  printf("early: %s\n", sluice_error_message());
  if (sluice_set_constants(client, &untyped, 1) != SLUICE_INVALID_ARGUMENT) return 10;
  printf("untyped: %s\n", sluice_error_message());
  if (sluice_set_constants(client, &nowhere, 1) != SLUICE_INVALID_ARGUMENT) return 10;
  printf("nowhere: %s\n", sluice_error_message());
  if (sluice_set_constants(client, &odd, 1) == SLUICE_OK) return 10;
  printf("odd: %s\n", sluice_error_message());
  return 0;
}

static int Train(sluice_client* client, int steps, const float* parameters, float* gradient) {
  const sluice_running_mean mean = {1, 1, 0.5f};
  int64_t process = getpid();
  const sluice_constant constant = {"process", NULL, 0, "I64", &process};
  int step;
  if (sluice_set_constants(client, &constant, 1) != SLUICE_OK) return Fail("constants");
  if (sluice_set_constants(client, &constant, 1) != SLUICE_FAILED_PRECONDITION) return 10;
  if (sluice_keep_running_means(client, &mean, 1) != SLUICE_OK) return Fail("keep");
  if (sluice_join(client) != SLUICE_OK || Wait(client) != SLUICE_OK) return Fail("join");
  printf("constant %ld\n", (long)process);
  if (sluice_keep_running_means(client, &mean, 1) != SLUICE_FAILED_PRECONDITION) return 10;
  printf("late: %s\n", sluice_error_message());
  for (step = 0; step < steps; ++step) {
    gradient[0] = 1;
    gradient[1] = 0.5f * parameters[1];
    if (sluice_send_early(client, 0, 1) != SLUICE_OK) return Fail("send early");
    if (sluice_set_running_means(client, &mean, 1) != SLUICE_OK) return Fail("set");
    if (sluice_push(client, 1, NULL) != SLUICE_OK || Wait(client) != SLUICE_OK) return Fail("push");
  }
  if (sluice_await_end(client) != SLUICE_OK || Wait(client) != SLUICE_OK) return Fail("end");
  printf("weight %g, mean %.3f\n", parameters[0], parameters[1]);
  return 0;
}

int main(int argc, char** argv) {
  static const uint32_t kShape[] = {1};
  const sluice_tensor tensors[] = {{"weight", kShape, 1, SLUICE_PARAMETER, SLUICE_FLOAT32},
                                   {"mean", kShape, 1, SLUICE_STATISTIC, SLUICE_FLOAT32}};
  const sluice_model model = {tensors, 2};
  const sluice_option rate = {"learning_rate", 1};
  const sluice_optimizer optimizer = {"sgd", &rate, 1, NULL, 0};
  float parameters[2] = {100, 1024};
  sluice_job* job = NULL;
  sluice_client* client = NULL;
  if (sluice_start(&argc, argv, &job) != SLUICE_OK) return Fail("start");
  if (sluice_is_server(job)) {
    const int code = sluice_serve(job);
    sluice_job_free(job);
    return code;
  }
  sluice_buffer* gradient = sluice_buffer_create(2);
  if (sluice_client_create(job, &model, &optimizer, parameters, gradient, &client) != SLUICE_OK) {
    return Fail("create");
  }
  int code = Misuse(client);
  if (code == 0) code = Train(client, atoi(argv[1]), parameters, sluice_buffer_floats(gradient));
  sluice_client_free(client);
  sluice_buffer_free(gradient);
  sluice_job_free(job);
  return code;
}
