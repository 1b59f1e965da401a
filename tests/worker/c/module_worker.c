/* A model server and its trainer in plain C. The module gives weight x input, its one method counts
 * its calls, and the trainer takes two steps. c_test.py starts it under mpirun, with an address. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/c/sluice.h"

static int Fail(const char* what) {
  fprintf(stderr, "%s: [%s] ", what, sluice_error_reason());
  return sluice_report_error("module_worker");
}

/* ---- The model server ---- */

typedef struct {
  sluice_job* job;
  sluice_client* client;
  sluice_buffer* gradient;
  float weight;
  float input;
  int64_t calls;
  float output;
  float of_input;
  sluice_module_tensor shown;
} Session;

static void Refuse(sluice_module_reply* reply, sluice_code code) {
  reply->code = code;
  reply->reason = sluice_error_reason();
  reply->message = sluice_error_message();
}

static void Show(Session* session, sluice_module_reply* reply, const char* name, const float* value,
                 int requires_grad) {
  const sluice_module_tensor shown = {name,          SLUICE_ELEMENT_FLOAT32, NULL, 0,
                                      requires_grad, value,                  sizeof *value};
  session->shown = shown;
  reply->tensors = &session->shown;
  reply->tensor_count = 1;
}

static void* Open(void* context, const char* trainer, sluice_module_place* place,
                  sluice_module_reply* reply) {
  static const uint32_t kShape[] = {1};
  const sluice_tensor tensor = {"weight", kShape, 1, SLUICE_PARAMETER, SLUICE_FLOAT32};
  const sluice_model model = {&tensor, 1};
  const sluice_option rate = {"learning_rate", 0.5};
  const sluice_optimizer sgd = {"sgd", &rate, 1, NULL, 0};
  Session* const session = calloc(1, sizeof *session);
  sluice_code code = sluice_job_worker(context, trainer, &session->job);
  session->weight = 10;
  session->gradient = sluice_buffer_create(1);
  if (code == SLUICE_OK) {
    code = sluice_client_create(session->job, &model, &sgd, &session->weight, session->gradient,
                                &session->client);
  }
  if (code == SLUICE_OK) code = sluice_join(session->client);
  if (code == SLUICE_OK) code = sluice_wait(session->client, SLUICE_FOREVER, NULL);
  if (code != SLUICE_OK) Refuse(reply, code);
  place->workers = 1;
  return session;
}

static void Answer(void* opened, const sluice_module_request* request, sluice_module_reply* reply) {
  Session* const session = opened;
  float* const gradient = sluice_buffer_floats(session->gradient);
  sluice_code code = SLUICE_OK;
  switch (request->kind) {
    case SLUICE_MODULE_FORWARD:
      memcpy(&session->input, request->tensors[0].data, sizeof(float));
      session->output = session->weight * session->input;
      Show(session, reply, NULL, &session->output, 1);
      break;
    case SLUICE_MODULE_BACKWARD: {
      float of_output;
      memcpy(&of_output, request->tensors[0].data, sizeof of_output);
      if (of_output > 99) {
        reply->code = SLUICE_INVALID_ARGUMENT;
        reply->message = "this gradient is too large";
      }
      *gradient += of_output * session->input;
      session->of_input = of_output * session->weight;
      Show(session, reply, NULL, &session->of_input, 0);
      break;
    }
    case SLUICE_MODULE_GRADIENTS:
      Show(session, reply, "weight", gradient, 0);
      /* It is refused before it is read. */
      if (request->name_count > 0) session->shown.size = (size_t)1 << 40;
      break;
    case SLUICE_MODULE_CALL:
      if (strcmp(request->method, "count") != 0) {
        reply->code = SLUICE_NOT_FOUND;
        reply->message = "there is only count";
        break;
      }
      ++session->calls;
      Show(session, reply, NULL, &session->output, 0);
      session->shown.element = SLUICE_ELEMENT_INT64;
      session->shown.data = &session->calls;
      session->shown.size = request->training ? 3 : sizeof session->calls;
      break;
    case SLUICE_MODULE_STEP:
      code = sluice_push(session->client, request->samples, request->loss);
      if (code == SLUICE_OK) code = sluice_wait(session->client, SLUICE_FOREVER, &reply->round);
      *gradient = 0;
      break;
    case SLUICE_MODULE_LEAVE:
      code = sluice_leave(session->client);
      if (code == SLUICE_OK) code = sluice_wait(session->client, SLUICE_FOREVER, NULL);
      break;
    default:
      *gradient = 0;
  }
  if (code != SLUICE_OK) Refuse(reply, code);
}

static void Close(void* opened) {
  Session* const session = opened;
  sluice_client_free(session->client);
  sluice_buffer_free(session->gradient);
  sluice_job_free(session->job);
  free(session);
}

static int Serve(sluice_job* job, const char* address) {
  const sluice_module_functions functions = {job, Open, Answer, Close};
  sluice_module_host* host;
  int code;
  if (sluice_module_serve(job, NULL, 1, 0, &functions, &host) != SLUICE_INVALID_ARGUMENT) return 10;
  printf("nowhere: %s\n", sluice_error_message());
  if (sluice_module_serve(job, address, 1, 0, &functions, &host) != SLUICE_OK) return Fail("serve");
  printf("serves at %s\n", sluice_module_host_address(host));
  if (sluice_module_host_wait(host, 0) != SLUICE_PENDING) return 10;
  code = sluice_serve(job);
  if (code == 0) sluice_module_host_wait(host, SLUICE_FOREVER);
  sluice_module_host_free(host);
  return code;
}

/* ---- The trainer ---- */

static sluice_code Ask(sluice_module* module, const sluice_module_request* request,
                       sluice_module_reply* reply) {
  const sluice_code code = sluice_module_ask(module, request);
  return code == SLUICE_OK ? sluice_module_wait(module, SLUICE_FOREVER, reply) : code;
}

static float ValueOf(const sluice_module_reply* reply) {
  float value;
  memcpy(&value, reply->tensors[0].data, sizeof value);
  return value;
}

static int Step(sluice_module* module, uint64_t call, float x) {
  const float one = 1;
  const sluice_module_tensor input = {NULL, SLUICE_ELEMENT_FLOAT32, NULL, 0, 1, &x, sizeof x};
  const sluice_module_tensor ones = {NULL, SLUICE_ELEMENT_FLOAT32, NULL, 0, 0, &one, sizeof one};
  sluice_module_request request = {SLUICE_MODULE_FORWARD, 0, 1, 1, NULL, NULL, NULL, 0,
                                   NULL,                  1, 1, NULL, 0};
  sluice_module_reply reply;
  request.call = call;
  request.tensors = &input;
  if (Ask(module, &request, &reply) != SLUICE_OK) return Fail("forward");
  printf("output %g\n", ValueOf(&reply));
  request.kind = SLUICE_MODULE_BACKWARD;
  request.tensors = &ones;
  if (Ask(module, &request, &reply) != SLUICE_OK) return Fail("backward");
  printf("gradient of the input %g\n", ValueOf(&reply));
  request.tensor_count = 0;
  request.kind = SLUICE_MODULE_GRADIENTS;
  if (Ask(module, &request, &reply) != SLUICE_OK) return Fail("gradients");
  printf("gradient of %s %g\n", reply.tensors[0].name, ValueOf(&reply));
  request.kind = SLUICE_MODULE_STEP;
  if (Ask(module, &request, &reply) != SLUICE_OK) return Fail("step");
  printf("step %d\n", (int)reply.round.step);
  return 0;
}

static int BeRefused(sluice_module* module) {
  static const char* const kWeight = "weight";
  const float one = 1, large = 100;
  const sluice_module_tensor input = {NULL, SLUICE_ELEMENT_FLOAT32, NULL, 0, 1, &one, sizeof one};
  const sluice_module_tensor ones = {NULL, SLUICE_ELEMENT_FLOAT32, NULL, 0, 0, &large, sizeof large};
  sluice_module_request request = {SLUICE_MODULE_FORWARD, 0, 1, 1, "count", NULL, NULL, 0,
                                   NULL,                  1, 1, NULL, 0};
  sluice_module_reply reply;
  request.tensors = &input;
  if (Ask(module, &request, &reply) != SLUICE_OK) return Fail("forward");
  request.kind = SLUICE_MODULE_BACKWARD;
  request.tensors = &ones;
  if (Ask(module, &request, &reply) != SLUICE_INVALID_ARGUMENT) return 10;
  request.tensor_count = 0;
  request.kind = SLUICE_MODULE_STEP;
  if (Ask(module, &request, &reply) != SLUICE_INVALID_ARGUMENT) return 10;
  printf("no step: %s\n", sluice_error_message());
  request.kind = SLUICE_MODULE_CALL; /* in training */
  if (Ask(module, &request, &reply) != SLUICE_INVALID_ARGUMENT) return 10;
  printf("torn: %s\n", sluice_error_message());
  request.kind = SLUICE_MODULE_GRADIENTS;
  request.names = &kWeight;
  request.name_count = 1;
  if (Ask(module, &request, &reply) != SLUICE_INVALID_ARGUMENT) return 10;
  printf("too large: %s\n", sluice_error_message());
  return 0;
}

static int Train(sluice_job* job, const char* address) {
  sluice_module* module;
  sluice_module_request request = {SLUICE_MODULE_CALL, 0, 0, 0, "count", NULL, NULL, 0,
                                   NULL,               0, 0, NULL, 0};
  sluice_module_reply reply;
  if (sluice_module_create(job, address, &module) != SLUICE_OK) return Fail("create");
  if (sluice_module_ask(module, &request) != SLUICE_FAILED_PRECONDITION) return 10;
  printf("early: %s\n", sluice_error_message());
  if (sluice_module_enter(module) != SLUICE_OK) return Fail("enter");
  if (sluice_module_ask(module, &request) != SLUICE_FAILED_PRECONDITION) return 10;
  if (sluice_module_wait(module, SLUICE_FOREVER, NULL) != SLUICE_OK) return Fail("entered");
  printf("place %d of %d\n", (int)sluice_module_client_place(module).index,
         (int)sluice_module_client_place(module).workers);
  if (Step(module, 1, 3) != 0 || Step(module, 2, 4) != 0) return 1;
  if (BeRefused(module) != 0) return 1;
  if (Ask(module, &request, &reply) != SLUICE_OK) return Fail("call");
  printf("counted %d in %d bytes\n", *(const unsigned char*)reply.tensors[0].data,
         (int)reply.tensors[0].size);
  request.method = "other";
  if (Ask(module, &request, &reply) != SLUICE_NOT_FOUND) return 10;
  printf("other: %s\n", sluice_error_message());
  request.kind = 99;
  if (Ask(module, &request, &reply) != SLUICE_INVALID_ARGUMENT) return 10;
  printf("kind: %s\n", sluice_error_message());
  request.kind = SLUICE_MODULE_LEAVE;
  if (Ask(module, &request, &reply) != SLUICE_OK) return Fail("leave");
  sluice_module_free(module);
  return 0;
}

int main(int argc, char** argv) {
  sluice_job* job;
  int code;
  if (sluice_start(&argc, argv, &job) != SLUICE_OK) return sluice_report_error(argv[0]);
  if (argc < 2) return 2;
  code = sluice_is_server(job) ? Serve(job, argv[1]) : Train(job, argv[1]);
  sluice_job_free(job);
  return code;
}
