/* A worker that makes a step and ends: ending_worker leave|free|fail|exit CODE. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/c/sluice.h"

static int Done(sluice_client* client, sluice_code begun) {
  return begun == SLUICE_OK && sluice_wait(client, SLUICE_FOREVER, NULL) == SLUICE_OK;
}

int main(int argc, char** argv) {
  const uint32_t shape[] = {1};
  const sluice_tensor weight[] = {{"weight", shape, 1, SLUICE_PARAMETER, SLUICE_FLOAT32}};
  const sluice_model model = {weight, 1};
  const sluice_option rate[] = {{"learning_rate", 1}};
  const sluice_optimizer sgd = {"sgd", rate, 1, NULL, 0};
  float parameter = 0;
  sluice_job* job;
  sluice_client* client;
  if (sluice_start(&argc, argv, &job) != SLUICE_OK || argc != 3) {
    return sluice_report_error(argv[0]);
  }
  sluice_buffer* gradient = sluice_buffer_create(1);
  if (sluice_client_create(job, &model, &sgd, &parameter, gradient, &client) != SLUICE_OK ||
      !Done(client, sluice_join(client)) || !Done(client, sluice_push(client, 1, NULL))) {
    return sluice_report_error(argv[0]);
  }
  if (strcmp(argv[1], "exit") == 0) exit(atoi(argv[2]));
  if (strcmp(argv[1], "leave") == 0 && !Done(client, sluice_leave(client))) return 9;
  if (strcmp(argv[1], "fail") == 0) sluice_set_failure(client, "no more data");
  sluice_client_free(client);
  sluice_buffer_free(gradient);
  sluice_job_free(job);
  return atoi(argv[2]);
}
