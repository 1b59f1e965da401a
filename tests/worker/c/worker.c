/* A worker in plain C. With --server=ADDRESS it pushes STEPS gradients, each of which is its place
 * plus 1 in every element, and prints what came of it. With a second argument one buffer carries
 * gradients and parameters in turn. c_test.py starts it. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/c/sluice.h"

enum { kWeights = 6, kBias = 3, kElements = kWeights + kBias };

static int Fail(const char* what) {
  fprintf(stderr, "%s: [%s] ", what, sluice_error_reason());
  return sluice_report_error("worker");
}

/* Waits in short turns, as a program does that handles signals. */
static sluice_code Wait(sluice_client* client, sluice_round* round) {
  sluice_code code;
  do {
    code = sluice_wait(client, 0.01, round);
  } while (code == SLUICE_PENDING);
  return code;
}

static const uint32_t kWeightShape[] = {2, 3};
static const uint32_t kBiasShape[] = {3};
static const sluice_tensor kTensors[] = {
    {"weight", kWeightShape, 2, SLUICE_PARAMETER, SLUICE_FLOAT32},
    {"bias", kBiasShape, 1, SLUICE_PARAMETER, SLUICE_FLOAT32},
};

/* Waits for the next step of a job, in short turns. */
static sluice_code Follow(sluice_follower* follower, sluice_followed* followed) {
  sluice_code code = sluice_follow(follower, 1);
  if (code == SLUICE_OK) {
    do {
      code = sluice_follower_wait(follower, 0.01, followed);
    } while (code == SLUICE_PENDING);
  }
  return code;
}

static sluice_code Create(sluice_job* job, const char* optimizer, const char* option,
                          float* parameters, sluice_buffer* gradient, sluice_client** client) {
  const sluice_model model = {kTensors, 2};
  const sluice_option options[] = {{option, 0.5}};
  const sluice_option slow[] = {{option, 0.25}};
  const char* const slow_parameters[] = {"bias"};
  const sluice_group groups[] = {{slow_parameters, 1, slow, 1}};
  const sluice_optimizer chosen = {optimizer, options, 1, groups, 1};
  return sluice_client_create(job, &model, &chosen, parameters, gradient, client);
}

static int32_t WriteFirst(void* context, float* parameters) {
  int i;
  (void)context;
  for (i = 0; i < kElements; ++i) parameters[i] = i < kWeights ? 100 : 200;
  return 0;
}

/* Says what is refused of one buffer. Returns 0 if it is. */
static int UseOneBuffer(sluice_client* client) {
  if (sluice_join(client) != SLUICE_FAILED_PRECONDITION) return 10;
  printf("one buffer: %s\n", sluice_error_message());
  if (sluice_set_restore(client, NULL, NULL) != SLUICE_INVALID_ARGUMENT) return 10;
  printf("no restore: %s\n", sluice_error_message());
  if (sluice_set_restore(client, WriteFirst, NULL) != SLUICE_OK) return Fail("restore");
  if (sluice_set_restore(client, WriteFirst, NULL) != SLUICE_FAILED_PRECONDITION) return 10;
  printf("restore twice: %s\n", sluice_error_message());
  return 0;
}

static int Train(sluice_client* client, int steps, float* parameters, float* gradient) {
  sluice_round round = {0, 0, 0};
  int i;
  int step;
  if (sluice_join(client) != SLUICE_FAILED_PRECONDITION) return 10;
  const uint32_t place = sluice_client_status(client).index;
  const sluice_option none[] = {{"lr", 1}};
  if (sluice_set_options(client, 2, none, 1) != SLUICE_INVALID_ARGUMENT) return 10;
  printf("no group: %s\n", sluice_error_message());
  if (sluice_set_options(client, 1, none, 1) != SLUICE_INVALID_ARGUMENT) return 10;
  printf("no option: %s\n", sluice_error_message());
  if (sluice_set_clip_norm(client, 0) != SLUICE_INVALID_ARGUMENT) return 10;
  printf("no norm: %s\n", sluice_error_message());
  printf("place %u of %u, parameter %g\n", place, sluice_client_status(client).workers,
         parameters[0]);
  for (step = 0; step < steps; ++step) {
    const float loss = (float)step;
    for (i = 0; i < kElements; ++i) gradient[i] = (float)(place + 1);
    if (sluice_send_early(client, kWeights, kBias) != SLUICE_OK) return Fail("send early");
    if (sluice_send_early(client, 0, 0) != SLUICE_OK) return Fail("send none early");
    if (step == 0) {
      if (sluice_send_early(client, kWeights, kBias) != SLUICE_INVALID_ARGUMENT) return 10;
      printf("twice: %s\n", sluice_error_message());
      if (sluice_attach(client, "test", &place, (size_t)1 << 40) != SLUICE_INVALID_ARGUMENT)
        return 10;
      printf("large: [%s]\n", sluice_error_reason());
    }
    if (sluice_attach(client, "test", &place, sizeof place) != SLUICE_OK) return Fail("attach");
    const sluice_option rate[] = {{"learning_rate", step == 0 ? 1 : 0.5}};
    if (sluice_set_options(client, 0, rate, 1) != SLUICE_OK) return Fail("options");
    if (sluice_set_clip_norm(client, 1e6) != SLUICE_OK) return Fail("clip norm");
    if (sluice_push(client, 1, &loss) != SLUICE_OK) return Fail("push");
    if (Wait(client, &round) != SLUICE_OK) return Fail("wait");
  }
  printf("step %llu, staleness %llu\n", (unsigned long long)round.step,
         (unsigned long long)round.staleness);
  /* A gradient that changes after a part of it was sent does not count. */
  if (sluice_send_early(client, 0, 1) != SLUICE_OK) return Fail("send early");
  gradient[0] += 1;
  if (sluice_push(client, 1, NULL) != SLUICE_FAILED_PRECONDITION) return 10;
  printf("changed: %s\n", sluice_error_message());
  if (sluice_await_end(client) != SLUICE_OK) return Fail("end");
  if (Wait(client, &round) != SLUICE_OK) return Fail("wait");
  printf("at the end: step %llu\n", (unsigned long long)sluice_client_status(client).step);
  printf("final step %llu, weight %.9g, bias %.9g\n", (unsigned long long)round.step, parameters[0],
         parameters[kWeights]);
  const char* const names[] = {"best"};
  const double values[] = {0.5};
  if (sluice_report(client, names, values, 1) != SLUICE_OK) return Fail("report");
  return Wait(client, NULL) == SLUICE_OK ? 0 : Fail("wait");
}

/* What sluice.h refuses. Returns 0 if it does. */
static int Misuse(sluice_job* job, int argc, char** argv, float* parameters,
                  sluice_buffer* gradient) {
  sluice_tensor wrong[] = {{NULL, kBiasShape, 1, SLUICE_PARAMETER, SLUICE_FLOAT32}};
  const sluice_model model = {wrong, 1};
  const sluice_optimizer optimizer = {"sgd", NULL, 0, NULL, 0};
  const char* const training[] = {"--server=127.0.0.1:1", "--epochs=3"};
  sluice_job* other = NULL;
  sluice_client* client = NULL;
  if (sluice_client_create(job, &model, &optimizer, parameters, gradient, &client) == SLUICE_OK)
    return 10;
  printf("no name: %s\n", sluice_error_message());
  wrong[0].name = "weight";
  wrong[0].dimensions = 1000000000000;
  if (sluice_client_create(job, &model, &optimizer, parameters, gradient, &client) == SLUICE_OK)
    return 10;
  printf("dimensions: %s\n", sluice_error_message());
  if (sluice_start(&argc, argv, &other) != SLUICE_FAILED_PRECONDITION) return 10;
  printf("again: %s\n", sluice_error_message());
  if (sluice_connect(training, 2, &other) != SLUICE_INVALID_ARGUMENT) return 10;
  printf("connect: %s\n", sluice_error_message());
  if (sluice_connect(NULL, 0, &other) != SLUICE_INVALID_ARGUMENT) return 10;
  printf("no server: %s\n", sluice_error_message());
  if (sluice_job_model(job, NULL, &other) != SLUICE_INVALID_ARGUMENT) return 10;
  printf("no model name: %s\n", sluice_error_message());
  if (sluice_job_model(job, "two words", &other) != SLUICE_INVALID_ARGUMENT) return 10;
  printf("model name: %s\n", sluice_error_message());
  if (sluice_job_model(job, "critic", &other) != SLUICE_OK) return Fail("model");
  if (sluice_job_rank(other) != sluice_job_rank(job) ||
      sluice_job_size(other) != sluice_job_size(job))
    return 10;
  sluice_job_free(other);
  if (sluice_serve(job) != 1) return 10;
  return 0;
}

/* A model has one client in a process. Returns 0 if a second is refused. */
static int JoinTwice(sluice_job* job) {
  float parameters[kElements] = {0};
  sluice_buffer* gradient = sluice_buffer_create(kElements);
  sluice_client* second = NULL;
  if (Create(job, "sgd", "learning_rate", parameters, gradient, &second) != SLUICE_OK) return 10;
  if (sluice_join(second) != SLUICE_OK) return 10;
  if (Wait(second, NULL) != SLUICE_FAILED_PRECONDITION) return 10;
  printf("second: %s\n", sluice_error_message());
  sluice_client_free(second);
  sluice_buffer_free(gradient);
  return 0;
}

/* Trains, and follows the training. */
static int TrainAndFollow(sluice_job* job, sluice_client* client, int steps, float* parameters,
                          float* gradient) {
  const sluice_model model = {kTensors, 2};
  sluice_buffer* seen = sluice_buffer_create(kElements);
  sluice_follower* follower = NULL;
  sluice_followed first = {0, 0, 0, 0};
  sluice_followed last = {0, 0, 0, 0};
  if (sluice_follower_create(job, &model, seen, &follower) != SLUICE_OK) return Fail("follower");
  if (sluice_follow(follower, 0) != SLUICE_INVALID_ARGUMENT) return 10;
  if (sluice_join(client) != SLUICE_OK || Wait(client, NULL) != SLUICE_OK) return Fail("join");
  if (JoinTwice(job) != 0) return 10;
  if (Follow(follower, &first) != SLUICE_OK) return Fail("follow");
  const float before = sluice_buffer_floats(seen)[0];
  const int code = Train(client, steps, parameters, gradient);
  if (code != 0) return code;
  if (Follow(follower, &last) != SLUICE_OK || last.ended) return Fail("follow");
  const float after = sluice_buffer_floats(seen)[0];
  if (Follow(follower, &last) != SLUICE_OK || !last.ended) return Fail("follow");
  printf("followed step %llu, parameter %g, then step %llu, parameter %g; ended\n",
         (unsigned long long)first.step, before, (unsigned long long)last.step, after);
  sluice_follower_free(follower);
  sluice_buffer_free(seen);
  return 0;
}

int main(int argc, char** argv) {
  sluice_job* job = NULL;
  sluice_client* client = NULL;
  if (sluice_start(&argc, argv, &job) != SLUICE_OK) return Fail("start");
  if (sluice_is_server(job)) return sluice_serve(job);
  if (argc != 2 && argc != 3) return 11;
  float first[kElements];
  WriteFirst(NULL, first);
  sluice_buffer* gradient = sluice_buffer_create(kElements);
  float* parameters = argc == 2 ? first : sluice_buffer_floats(gradient);
  sluice_buffer* small = sluice_buffer_create(kElements - 1);
  if (sluice_buffer_create(UINT64_MAX) != NULL || sluice_buffer_create(1ULL << 62) != NULL)
    return 12;
  if (Create(job, "sgdd", "learning_rate", parameters, gradient, &client) == SLUICE_OK) return 10;
  printf("optimizer: %s\n", sluice_error_message());
  if (Create(job, "sgd", "lr", parameters, gradient, &client) == SLUICE_OK) return 10;
  printf("option: [%s] %s\n", sluice_error_reason(), sluice_error_message());
  if (Create(job, "sgd", "learning_rate", parameters, small, &client) == SLUICE_OK) return 10;
  printf("buffer: %s\n", sluice_error_message());
  if (Create(job, "sgd", "learning_rate", parameters, gradient, &client) != SLUICE_OK) {
    return Fail("create");
  }
  if (sluice_push(client, 1, NULL) != SLUICE_FAILED_PRECONDITION) return 10;
  printf("before it joins: %s\n", sluice_error_message());
  int code = Misuse(job, argc, argv, parameters, gradient);
  if (code == 0 && argc == 3) code = UseOneBuffer(client);
  if (code == 0 && argc == 2) {
    if (sluice_set_restore(client, WriteFirst, NULL) != SLUICE_FAILED_PRECONDITION) return 10;
    printf("two buffers: %s\n", sluice_error_message());
  }
  if (code == 0) {
    code = TrainAndFollow(job, client, atoi(argv[1]), parameters, sluice_buffer_floats(gradient));
  }
  sluice_client_free(client);
  sluice_buffer_free(gradient);
  sluice_buffer_free(small);
  sluice_job_free(job);
  return code;
}
