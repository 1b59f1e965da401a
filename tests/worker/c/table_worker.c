/* A worker in plain C whose model has a table, and one tensor unless a second argument is given. In
 * each of STEPS steps it pulls the rows of its place and of the id 10, and pushes gradients of
 * both: 1, and its place plus 1. c_test.py starts it. */

#include <stdio.h>
#include <stdlib.h>

#include "worker/c/sluice.h"

enum { kWidth = 2 };

static int Fail(const char* what) {
  fprintf(stderr, "%s: [%s] ", what, sluice_error_reason());
  return sluice_report_error("table_worker");
}

static sluice_code Wait(sluice_client* client) { return sluice_wait(client, SLUICE_FOREVER, NULL); }

/* A model without tensors and tables is refused. Returns 0 if it is. */
static int JoinWithoutModel(sluice_client* client) {
  if (sluice_join(client) != SLUICE_INVALID_ARGUMENT) return 10;
  printf("no model: %s\n", sluice_error_message());
  return 0;
}

/* What is refused before the client joins. Returns 0 if it is. */
static int MisuseTables(sluice_client* client, const sluice_table* right) {
  sluice_table wrong = *right;
  wrong.name = NULL;
  if (sluice_set_tables(client, &wrong, 1) != SLUICE_INVALID_ARGUMENT) return 10;
  printf("no name: %s\n", sluice_error_message());
  wrong = *right;
  wrong.initializer = 3;
  if (sluice_set_tables(client, &wrong, 1) != SLUICE_INVALID_ARGUMENT) return 10;
  printf("initializer: %s\n", sluice_error_message());
  wrong = *right;
  wrong.divisor = -1;
  if (sluice_set_tables(client, &wrong, 1) != SLUICE_INVALID_ARGUMENT) return 10;
  printf("divisor: %s\n", sluice_error_message());
  wrong = *right;
  wrong.optimizer = "lamb";
  if (sluice_set_tables(client, &wrong, 1) == SLUICE_OK) return 10;
  printf("lamb: [%s]\n", sluice_error_reason());
  if (sluice_pull_rows(client, 0, NULL, 0, NULL) != SLUICE_FAILED_PRECONDITION) return 10;
  printf("early: %s\n", sluice_error_message());
  if (sluice_prefetch_rows(client, 0, NULL, 0) != SLUICE_FAILED_PRECONDITION) return 10;
  printf("prefetched early: %s\n", sluice_error_message());
  return 0;
}

/* What is refused afterwards. */
static int MisuseRows(sluice_client* client, const sluice_table* table) {
  const uint64_t unsorted[] = {5, 4};
  float rows[2 * kWidth] = {0};
  if (sluice_set_tables(client, table, 1) != SLUICE_FAILED_PRECONDITION) return 10;
  printf("twice: %s\n", sluice_error_message());
  if (sluice_pull_rows(client, 1, unsorted, 1, rows) != SLUICE_INVALID_ARGUMENT) return 10;
  printf("table: %s\n", sluice_error_message());
  if (sluice_set_row_gradients(client, 0, unsorted, 2, rows) != SLUICE_INVALID_ARGUMENT) return 10;
  printf("ids: %s\n", sluice_error_message());
  if (sluice_prefetch_rows(client, 0, unsorted, 2) != SLUICE_INVALID_ARGUMENT) return 10;
  printf("prefetched ids: %s\n", sluice_error_message());
  if (sluice_pull_rows(client, 0, NULL, 0, NULL) != SLUICE_OK) return Fail("no rows");
  if (sluice_prefetch_rows(client, 0, NULL, 0) != SLUICE_FAILED_PRECONDITION) return 10;
  printf("prefetched meanwhile: %s\n", sluice_error_message());
  if (Wait(client) != SLUICE_OK) return Fail("no rows");
  if (sluice_pull_rows(client, 0, NULL, 0, NULL) != SLUICE_OK) return Fail("no rows");
  return Wait(client) == SLUICE_OK ? 0 : Fail("no rows");
}

/* Follows the job to its newest step, with rows. */
static int Follow(sluice_job* job, const sluice_model* model, const sluice_table* table) {
  const uint64_t ids[] = {0, 10};
  float rows[2 * kWidth] = {9, 9, 9, 9};
  sluice_followed followed = {0, 0, 0, 0};
  sluice_follower* follower = NULL;
  sluice_buffer* bias = sluice_buffer_create(model->count);
  if (sluice_follower_create(job, model, bias, &follower) != SLUICE_OK) return Fail("follower");
  if (sluice_follow_rows(follower, 0, ids, 2, rows) != SLUICE_INVALID_ARGUMENT) return 10;
  printf("no table: %s\n", sluice_error_message());
  if (model->count == 0) {
    if (sluice_follow(follower, 1) != SLUICE_INVALID_ARGUMENT) return 10;
    printf("nothing to follow: %s\n", sluice_error_message());
  }
  if (sluice_follower_set_tables(follower, table, 1) != SLUICE_OK) return Fail("follower's tables");
  if (sluice_follower_set_tables(follower, table, 1) != SLUICE_FAILED_PRECONDITION) return 10;
  printf("follower: %s\n", sluice_error_message());
  if (sluice_follow_rows(follower, 0, ids, 2, rows) != SLUICE_OK) return Fail("followed rows");
  if (sluice_follow(follower, 1) != SLUICE_OK) return Fail("follow");
  if (sluice_follower_wait(follower, SLUICE_FOREVER, &followed) != SLUICE_OK) return Fail("follow");
  printf("followed step %llu, rows %g %g, %g %g\n", (unsigned long long)followed.step, rows[0],
         rows[1], rows[2], rows[3]);
  sluice_follower_free(follower);
  sluice_buffer_free(bias);
  return 0;
}

static int Train(sluice_client* client, int steps) {
  const uint64_t place = sluice_client_status(client).index;
  const uint64_t ids[] = {place, 10};
  const uint64_t all[] = {0, 1, 10, UINT64_MAX};
  float rows[4 * kWidth];
  int step;
  for (step = 0; step < steps; ++step) {
    const float two = (float)(place + 1);
    const float gradients[] = {1, 1, two, two};
    if (sluice_pull_rows(client, 0, ids, 2, rows) != SLUICE_OK) return Fail("pull");
    if (Wait(client) != SLUICE_OK) return Fail("pull");
    if (sluice_set_row_gradients(client, 0, all, 2, rows) != SLUICE_OK) return Fail("rows");
    /* These replace them. */
    if (sluice_set_row_gradients(client, 0, ids, 2, gradients) != SLUICE_OK) return Fail("rows");
    /* Of an earlier step than the next pull, which pulls them again; every other time it has other
     * ids. */
    if (sluice_prefetch_rows(client, 0, ids, (size_t)(1 + step % 2)) != SLUICE_OK)
      return Fail("prefetch");
    if (sluice_push(client, 1, NULL) != SLUICE_OK) return Fail("push");
    if (Wait(client) != SLUICE_OK) return Fail("push");
  }
  if (sluice_prefetch_rows(client, 0, all, 4) != SLUICE_OK) return Fail("prefetch");
  if (sluice_pull_rows(client, 0, all, 4, rows) != SLUICE_OK) return Fail("pull");
  if (Wait(client) != SLUICE_OK) return Fail("pull");
  printf("rows %g %g, %g %g, %g %g, %g %g\n", rows[0], rows[1], rows[2], rows[3], rows[4], rows[5],
         rows[6], rows[7]);
  return 0;
}

/* Rows can be pulled, also ahead, until the report. Gradients are pushed no more. */
static int End(sluice_client* client) {
  const uint64_t ids[] = {0, 10};
  float rows[2 * kWidth] = {0};
  int pull;
  if (sluice_prefetch_rows(client, 0, ids, 2) != SLUICE_OK) return Fail("prefetch");
  if (sluice_await_end(client) != SLUICE_OK || Wait(client) != SLUICE_OK) return Fail("end");
  for (pull = 0; pull < 2; ++pull) {
    if (sluice_pull_rows(client, 0, ids, 2, rows) != SLUICE_OK) return Fail("pull at the end");
    if (Wait(client) != SLUICE_OK) return Fail("pull at the end");
    printf("at the end %g %g, %g %g\n", rows[0], rows[1], rows[2], rows[3]);
    if (sluice_prefetch_rows(client, 0, ids, 2) != SLUICE_OK) return Fail("prefetch at the end");
  }
  if (sluice_set_row_gradients(client, 0, ids, 2, rows) != SLUICE_FAILED_PRECONDITION) return 10;
  printf("gradients at the end: %s\n", sluice_error_message());
  if (sluice_report(client, NULL, NULL, 0) != SLUICE_OK || Wait(client) != SLUICE_OK)
    return Fail("report");
  if (sluice_pull_rows(client, 0, ids, 2, rows) != SLUICE_FAILED_PRECONDITION) return 10;
  printf("pulled after the report: %s\n", sluice_error_message());
  if (sluice_prefetch_rows(client, 0, ids, 2) != SLUICE_FAILED_PRECONDITION) return 10;
  return 0;
}

int main(int argc, char** argv) {
  const uint32_t shape[] = {1};
  const sluice_tensor tensor = {"bias", shape, 1, SLUICE_PARAMETER, SLUICE_FLOAT32};
  sluice_model model = {&tensor, 1};
  const sluice_optimizer optimizer = {"adam", NULL, 0, NULL, 0};
  const sluice_option rate = {"learning_rate", 0.5};
  const sluice_table table = {
      .name = "items", .width = kWidth, .optimizer = "sgd", .options = &rate, .option_count = 1};
  float bias = 0;
  int code;
  sluice_job* job = NULL;
  sluice_client* client = NULL;
  if (sluice_start(&argc, argv, &job) != SLUICE_OK) return Fail("start");
  if (sluice_is_server(job)) return sluice_serve(job);
  if (argc != 2 && argc != 3) return 11;
  if (argc == 3) model.count = 0;
  sluice_buffer* gradient = sluice_buffer_create(model.count);
  if (sluice_client_create(job, &model, &optimizer, model.count == 0 ? NULL : &bias, gradient,
                           &client) != SLUICE_OK)
    return Fail("create");
  code = model.count == 0 ? JoinWithoutModel(client) : 0;
  if (code == 0) code = MisuseTables(client, &table);
  if (code == 0 && sluice_set_tables(client, &table, 1) != SLUICE_OK) code = Fail("tables");
  if (code == 0 && (sluice_join(client) != SLUICE_OK || Wait(client) != SLUICE_OK))
    code = Fail("join");
  if (code == 0) code = MisuseRows(client, &table);
  if (code == 0) code = Train(client, atoi(argv[1]));
  if (code == 0) code = Follow(job, &model, &table);
  if (code == 0) code = End(client);
  sluice_client_free(client);
  sluice_buffer_free(gradient);
  sluice_job_free(job);
  return code;
}
