/* A worker of a Sluice job for any language: this header is C, and names no other library.
 *
 * A program that trains starts a job, describes its model, and then repeats: compute a gradient,
 * sluice_push(), sluice_wait().
 *
 *   sluice_job* job;
 *   if (sluice_start(&argc, argv, &job) != SLUICE_OK) return fail(sluice_error_message());
 *   if (sluice_is_server(job)) return sluice_serve(job);
 *   sluice_buffer* gradient = sluice_buffer_create(elements);
 *   sluice_client* client;
 *   sluice_client_create(job, &model, &optimizer, parameters, gradient, &client);
 *   sluice_join(client);
 *   sluice_wait(client, SLUICE_FOREVER, NULL);         now `parameters` are the job's
 *   for (...) {
 *     compute(parameters, sluice_buffer_floats(gradient));
 *     sluice_push(client, samples, &loss);
 *     sluice_wait(client, SLUICE_FOREVER, &round);     now `parameters` are those to go on with
 *   }
 *   sluice_leave(client);
 *   sluice_wait(client, SLUICE_FOREVER, NULL);
 *
 * Vectors are float32, without gaps, in the order of the model's tensors. Calls that may wait for
 * the server return at once; sluice_wait() waits for what they have begun. So a program can handle
 * signals meanwhile. Lost connections, a server that is started again, and retries of pushes are
 * the client's: a push counts at most once.
 *
 * A program that evaluates follows a job that others train: sluice_connect(), then sluice_follow()
 * again and again.
 *
 * A job is used by one thread at a time, and so are a client and a follower. Texts are UTF-8 and
 * end with 0. A process that was forked must not use the job and the clients of its parent.
 */

#ifndef SLUICE_WORKER_C_SLUICE_H_
#define SLUICE_WORKER_C_SLUICE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SLUICE_API __attribute__((visibility("default")))

/* What a call returns: SLUICE_OK, SLUICE_PENDING, or gRPC's code of an error. */
typedef int32_t sluice_code;
enum {
  SLUICE_PENDING = -1, /* sluice_wait(): the time is over, and what was begun goes on */
  SLUICE_OK = 0,
  SLUICE_CANCELLED =
      1, /* sluice_start(): the command line asks for a text; see sluice_report_error() */
  SLUICE_INVALID_ARGUMENT = 3,
  SLUICE_DEADLINE_EXCEEDED = 4,
  SLUICE_NOT_FOUND = 5,
  SLUICE_PERMISSION_DENIED = 7,
  SLUICE_RESOURCE_EXHAUSTED = 8,
  SLUICE_FAILED_PRECONDITION = 9,
  SLUICE_ABORTED = 10,
  SLUICE_UNIMPLEMENTED = 12,
  SLUICE_INTERNAL = 13,
  SLUICE_UNAVAILABLE = 14, /* the server is gone, and did not come back */
  SLUICE_DATA_LOSS = 15,
  SLUICE_UNAUTHENTICATED = 16
};

/* About the last call of this thread that returned an error: a sentence for people, and a word for
 * code, such as "LAYOUT_MISMATCH"; proto/sluice/v1/parameter_server.proto lists the words. "" if
 * the error is not Sluice's. Valid until the thread's next call. */
SLUICE_API const char* sluice_error_message(void);
SLUICE_API const char* sluice_error_reason(void);

/* Prints that error after the program's name, unless another rank of the launch prints it. Returns
 * the exit code for the process: 2 for a wrong command line, 3 if the server could not be reached
 * or is gone, 7 if training diverged, else 1. CANCELLED of sluice_start() is no error: the command
 * line asks for a text, such as that of --sluice-help. Prints that alone, and returns 0. */
SLUICE_API int sluice_report_error(const char* program);

/* ---- Job ---- */

typedef struct sluice_job sluice_job;
typedef struct sluice_gathered sluice_gathered;

/* The version of this library: "0.1.0". */
SLUICE_API const char* sluice_version(void);

/* Takes part in the launch. Under mpirun or srun, rank 0 becomes the server, and the others become
 * workers. With --sluice-servers=S, S - 1 further ranks serve, too. With --sluice-server=host:port
 * every process becomes a worker. Sluice's flags, such as --sluice-mode=async, are removed from
 * `argv`, which ends with NULL; `argv[0]` is the program's name. What is left there is the
 * program's. INVALID_ARGUMENT for a flag with the prefix that Sluice does not have. Called once in
 * a process, from its main thread; again is FAILED_PRECONDITION.
 *
 * A program that uses MPI itself initialises it before this call and finalizes it after
 * sluice_client_free(), on all ranks: then Sluice uses MPI as it is. Otherwise MPI is finalized
 * when this returns, and cannot be used any more. If MPI was finalized before, that is
 * FAILED_PRECONDITION. */
SLUICE_API sluice_code sluice_start(int* argc, char** argv, sluice_job** job);
/* The same, but also takes Sluice's flags without the prefix: --mode=async. A flag of the program's
 * own that has the name of one of Sluice's, such as --workers, never reaches the program then. */
SLUICE_API sluice_code sluice_start_with_all_flags(int* argc, char** argv, sluice_job** job);

SLUICE_API int sluice_is_server(const sluice_job* job);

/* Serves until the job is over. Rank 0 prints the job's closing table. Returns the exit code for
 * the process. Only if sluice_is_server(). */
SLUICE_API int sluice_serve(sluice_job* job);

/* Serves by hand or under MPI, in place of a job: as the program sluice_server with these
 * arguments, whose first is ignored, and with the optimizer and the reader that were set. Returns
 * the exit code for the process. Once, from the main thread. */
SLUICE_API int sluice_run_server(int argc, char** argv);

/* Whether this worker should print its progress: worker 0 of a launch, or one started by hand. */
SLUICE_API int sluice_speaks(const sluice_job* job);

/* This worker's place among the workers of its launch, from 0 on, and how many they are, without
 * the servers; known before a model is made. -1 in a worker that was started by hand, where the
 * server chooses (sluice_client_status()); the rank of a server is -1, too. */
SLUICE_API int32_t sluice_job_rank(const sluice_job* job);
SLUICE_API int32_t sluice_job_size(const sluice_job* job);

/* Reaches a server that runs elsewhere without taking part in its job: for sluice_follower_create()
 * alone. `flags` are --server, and those that reach it: --name, --connect-timeout, --token-file and
 * those of TLS. Others are INVALID_ARGUMENT. The server is asked later. */
SLUICE_API sluice_code sluice_connect(const char* const* flags, size_t count, sluice_job** job);

/* The job as the model of that name sees it, in a job that has several: such as a GAN's critic, or
 * one fold after another. A model has parameters, an optimizer, steps and workers of its own, as if
 * it were a job by itself. sluice_client_create() and sluice_follower_create() take `model` as they
 * take `job`, which has the model without a name. Rank and size are this worker's. The name has at
 * most 64 letters, digits, dots, hyphens and underscores, the first a letter or a digit.
 *
 * `model` is freed by sluice_job_free(), before or after `job`. From the first sluice_join() for
 * such a model on, the job does not end until all of the process's jobs were freed, or the process
 * has ended. That join returns SLUICE_INVALID_ARGUMENT if the job cannot have several models, and
 * SLUICE_UNIMPLEMENTED if the server is too old.
 *   SLUICE_INVALID_ARGUMENT     no model can have that name
 *   SLUICE_FAILED_PRECONDITION  this process serves */
SLUICE_API sluice_code sluice_job_model(const sluice_job* job, const char* name,
                                        sluice_job** model);

/* Writes the names of the job's models that have one to `names`, in ascending order, each with a 0
 * after it, and one more 0 at the end: at most SLUICE_MODEL_NAMES bytes. Waits for the server up to
 * --connect-timeout.
 *   SLUICE_UNAVAILABLE    the server is lost, or has ended
 *   SLUICE_UNIMPLEMENTED  the server is too old for several models */
enum { SLUICE_MODEL_NAMES = 256 * 65 + 1 };
SLUICE_API sluice_code sluice_model_names(const sluice_job* job, char* names);

/* Keeps the job from its end as long as this process lives, also if none of its workers takes part:
 * for a worker that leaves, and will join again. Waits for the server up to --connect-timeout.
 *   SLUICE_INVALID_ARGUMENT  the job has several servers
 *   SLUICE_UNIMPLEMENTED     the server is too old */
SLUICE_API sluice_code sluice_hold_job(const sluice_job* job);

/* Gives bytes to all workers of the launch, and returns what each has given: for what surrounds
 * training, such as a mean of accuracies, or a choice of rank 0. At most 3 MiB of all together. All
 * workers make the same calls in the same order, each in one thread. `gathered` is freed by
 * sluice_gathered_free().
 *   SLUICE_DEADLINE_EXCEEDED    some workers have not come within `seconds`, at most 3,600; the
 *                               message names them. The next call is for the same exchange: give
 *                               the same bytes
 *   SLUICE_UNAVAILABLE          the server is lost, or has ended
 *   SLUICE_FAILED_PRECONDITION  this worker was started by hand, and has no rank */
SLUICE_API sluice_code sluice_all_gather(const sluice_job* job, const void* data, size_t size,
                                         double seconds, sluice_gathered** gathered);

/* What the worker of that rank has given, and how many bytes that has. */
SLUICE_API const void* sluice_gathered_data(const sluice_gathered* gathered, uint32_t rank,
                                            size_t* size);

/* NULL is allowed. */
SLUICE_API void sluice_gathered_free(sluice_gathered* gathered);

/* Every client and follower of the job must have been freed before. NULL is allowed. */
SLUICE_API void sluice_job_free(sluice_job* job);

/* ---- Model ---- */

enum { SLUICE_PARAMETER = 0, SLUICE_STATISTIC = 1 };

/* The type of the tensor in the worker's own model; vectors are float32. Integers are counts of
 * batches, of kind SLUICE_STATISTIC only, and exact up to 2^24. */
enum {
  SLUICE_FLOAT32 = 0,
  SLUICE_FLOAT64 = 1,
  SLUICE_FLOAT16 = 2,
  SLUICE_BFLOAT16 = 3,
  SLUICE_INT64 = 4
};

typedef struct {
  const char* name;
  const uint32_t* shape; /* `dimensions` numbers; may be NULL for a scalar */
  size_t dimensions;
  /* SLUICE_PARAMETER: the optimizer applies the gradient. SLUICE_STATISTIC: workers push values,
   * and the new value is their mean; see also sluice_keep_running_means(). */
  int32_t kind;
  int32_t type; /* SLUICE_FLOAT32 … */
} sluice_tensor;

typedef struct {
  const sluice_tensor* tensors;
  size_t count;
} sluice_model;

/* A tensor of the model that is not trained, of any type and size: a frozen parameter, a mask, a
 * table of integers. `data` is the memory of all its elements, little-endian. */
typedef struct {
  const char* name;
  const uint64_t* shape; /* `dimensions` numbers, of which some may be 0; NULL for a scalar */
  size_t dimensions;
  const char* type; /* its name in safetensors, such as "I64" or "BOOL": see tensor.proto */
  void* data;
} sluice_constant;

/* An option of an optimizer, by the name that the flags of sluice_train have, with _ for -:
 * "learning_rate", "momentum", "beta1". A switch is on if its value is not 0. */
typedef struct {
  const char* name;
  double value;
} sluice_option;

/* Parameters with options of their own. Options that are not given have the optimizer's defaults,
 * not the values that the rest of the model has. */
typedef struct {
  const char* const* parameters; /* names of tensors */
  size_t parameter_count;
  const sluice_option* options;
  size_t option_count;
} sluice_group;

typedef struct {
  const char*
      name; /* sgd, adam, adamw, adagrad, rmsprop, lamb, averaging, mean_gradient, program */
  const sluice_option* options;
  size_t option_count;
  const sluice_group* groups;
  size_t group_count;
} sluice_optimizer;

/* ---- The server's optimizer ----
 *
 * In every mode the server can step with an optimizer that the program
 * brings. The workers name it in sluice_client_create(): the optimizer "program", with the options
 * "learning_rate" and "kind_crc32", in groups, too: a checksum, at least 1, by which open() may see
 * that it makes what the workers mean. A job with several servers cannot have one. */

/* A tensor of the model, and its place in the vector. */
typedef struct {
  sluice_tensor tensor;
  uint64_t offset;     /* of its first element */
  uint32_t group;      /* whose learning rate it has */
  uint32_t kind_crc32; /* that the workers have given for that group */
} sluice_server_tensor;

typedef struct {
  uint64_t number;              /* the optimizer's first step is 1 */
  const double* learning_rates; /* of the parameters in no group, then of each group */
  size_t learning_rate_count;
  float* parameters; /* become the next ones; statistics are the server's */
  float* gradient;   /* the mean; the step may change it */
  size_t size;       /* elements of both */
  float* state;      /* 0 before the first step; saved in checkpoints */
  size_t state_size;
} sluice_server_step;

/* Bytes for why a function failed, with the 0 at the end. */
enum { SLUICE_OPTIMIZER_ERROR = 1024 };

/* The functions of an optimizer. Threads of the server call them; those of one optimizer are called
 * one at a time. */
typedef struct {
  void* context;
  /* Makes the optimizer of a model, and sets how many floats of state it has. NULL if it cannot:
   * then `error` says why, and the first worker is told. The tensors are gone when this returns. It
   * may be called more than once for a model; what is not used is closed. */
  void* (*open)(void* context, const sluice_server_tensor* tensors, size_t count,
                uint64_t* state_size, char* error);
  /* Makes a step, and returns 0. On another number the step is not made, and `error` says why. The
   * memory is the same in all steps of an optimizer. The result depends on nothing but what `step`
   * has: a step may be forgotten, and made anew; after a restart the journal's are made again. */
  int (*step)(void* optimizer, const sluice_server_step* step, char* error);
  void (*close)(void* optimizer);
} sluice_server_optimizer;

/* Before sluice_start(), in all processes of the launch. The functions stay valid until the process
 * ends. */
SLUICE_API void sluice_set_server_optimizer(const sluice_server_optimizer* optimizer);

/* ---- What workers attach to their pushes ---- */

typedef struct {
  const char* type;
  const void* data;
  size_t size; /* bytes */
} sluice_attachment;

/* Called in the process that serves, once for each push with attachments that counts, by threads of
 * the server. The push is answered when it returns. `step` is the one on which the gradient was
 * computed. What the pointers show is gone then. */
typedef void (*sluice_attachment_reader)(void* context, const char* worker, uint64_t step,
                                         const sluice_attachment* attachments, size_t count);

/* Before sluice_start(), in all processes of the launch. `reader` stays valid until the process
 * ends. sluice_attach() attaches. */
SLUICE_API void sluice_set_attachment_reader(sluice_attachment_reader reader, void* context);

/* Memory for a gradient, which a server on the same node reads there. The floats are 0 at first.
 * NULL if there is not so much memory. */
typedef struct sluice_buffer sluice_buffer;
SLUICE_API sluice_buffer* sluice_buffer_create(uint64_t elements);
SLUICE_API float* sluice_buffer_floats(sluice_buffer* buffer);
/* Clients that use the buffer keep its memory. NULL is allowed. */
SLUICE_API void sluice_buffer_free(sluice_buffer* buffer);

/* ---- Client ---- */

typedef struct sluice_client sluice_client;

/* Makes a worker's client. `parameters` has as many floats as the model has elements, and must stay
 * valid until the client is freed. They may be those of `gradient`, see sluice_set_restore(). What
 * `model` and `optimizer` point to is copied. A model of tables only has no tensors, and a gradient
 * of 0 elements; `parameters` may be NULL then. */
SLUICE_API sluice_code sluice_client_create(sluice_job* job, const sluice_model* model,
                                            const sluice_optimizer* optimizer, float* parameters,
                                            sluice_buffer* gradient, sluice_client** client);

/* Waits for what was begun, and frees the client. A worker that has joined and has not left counts
 * as one that has failed: the job takes it for lost at once. So call sluice_leave() or
 * sluice_await_end() first when training is done. A process that calls exit(), or returns from
 * main(), without having freed its clients has left if its exit code is 0, and has failed
 * otherwise. NULL is allowed. */
SLUICE_API void sluice_client_free(sluice_client* client);

/* Says why this worker cannot go on: a sentence for the server's log, of which 256 bytes are told.
 * Nothing happens before sluice_client_free(). */
SLUICE_API void sluice_set_failure(sluice_client* client, const char* why);

/* Writes the parameters that the program holds to `parameters`, all elements of them. Returns 0, or
 * another number if it cannot. */
typedef int32_t (*sluice_restore)(void* context, float* parameters);

/* For a program that keeps the model's parameters in another form, such as 16 bits, and needs no
 * vector of them beside the gradient: sluice_client_create() then gets the floats of the gradient's
 * buffer as `parameters`. A push sends the gradient that is in the buffer. When sluice_wait() has
 * returned SLUICE_OK for a join or a push, the buffer holds the new parameters instead: copy them
 * out before you write the next gradient. After an error it may hold anything: take nothing from
 * it, and write the gradient again before the next push.
 *
 * `restore` is called if this worker must offer its parameters, because the server has none: in the
 * first worker's join, and in a push to a server that has come back without any. That push's
 * gradient is dropped (disposition 2). If it does not return 0, the call ends with
 * SLUICE_FAILED_PRECONDITION, and nothing is offered. A thread of the client calls it, at any time
 * from sluice_join() or sluice_push() until sluice_wait() has returned something else than
 * SLUICE_PENDING. So until then the program does not change its parameters. `restore` calls no
 * function of this client, and throws nothing. `context` is passed on, and must stay valid until
 * the client is freed.
 *
 * Call sluice_set_restore() once, before sluice_join(). Without it, sluice_join() refuses such
 * parameters. */
SLUICE_API sluice_code sluice_set_restore(sluice_client* client, sluice_restore restore,
                                          void* context);

/* Writes the program's model to bytes of its own, which stay valid until the next call: parameters
 * and the state of its optimizer. Returns 0, or another number if it cannot. */
typedef int32_t (*sluice_save_model)(void* context, const void** bytes, uint64_t* size);
/* Takes the model of another worker. Returns 0, or another number if it cannot. */
typedef int32_t (*sluice_load_model)(void* context, const void* bytes, uint64_t size);

/* For a job of the optimizer "mean_gradient", whose server makes no steps: each worker makes all of
 * them, with an optimizer of its own, and has the model. Only in sync. Such a client needs both
 * sluice_set_restore() and this, once, before sluice_join().
 *
 * After the join, the buffer has the job's first parameters, unless `load` was called. After a
 * push with sluice_status.step_to_take it has the mean gradient of all workers: take a step with
 * it. The same holds for a join in which `load` was called. Without step_to_take the step was made
 * without gradients, or `load` has brought it, and what is in the buffer is no gradient.
 * sluice_await_end() writes the last mean there.
 *
 * A worker that comes late, or has missed steps, takes the model of another one: `save` is called
 * there while it waits for its push, and `load` here, in a join or a push. A thread of the client
 * calls them, as it calls `restore`, and what is said of that holds for them. If `save` fails, the
 * worker that waits gets an error. */
SLUICE_API sluice_code sluice_set_model(sluice_client* client, sluice_save_model save,
                                        sluice_load_model load, void* context);

/* For such a client, before sluice_join(): the join calls `load` in any case, with the model of a
 * worker that has contributed to the current step. Without it, a worker that joins before the first
 * step has only the job's first parameters. That is not enough if the program's optimizer has a
 * state by then, because the others have trained another model before. */
SLUICE_API sluice_code sluice_take_model(sluice_client* client);

/* What is begun with one of these five, or with sluice_pull_rows() or sluice_pull_slots(), must be
 * waited for before the next is called, or the parameters or the gradient are used. */

/* Joins the job. If the job has no parameters yet, those in `parameters` become the job's;
 * otherwise the job's replace them. The gradient's buffer holds zeroes afterwards, unless it is
 * also that of the parameters. Called first. After sluice_leave() it may be called again: then this
 * worker takes part again, with the job's latest parameters, unless the job has ended meanwhile. */
SLUICE_API sluice_code sluice_join(sluice_client* client);

/* Pushes the gradient, which was computed on `samples` samples and on the parameters that the
 * client holds. Then waits until the job's mode lets this worker go on, and pulls the parameters to
 * go on with. `loss` is the batch's mean, which the server shows and judges; it may be NULL. */
SLUICE_API sluice_code sluice_push(sluice_client* client, uint32_t samples, const float* loss);

/* Elements that are exponential moving averages, such as the averages of batch normalization: each
 * batch makes such an element m times its value, plus 1 - m times what the batch has. `decay` is
 * the product of m over the batches since the parameters were pulled: so much of what was pulled is
 * left in the element. proto/sluice/v1/tensor.proto has the arithmetic. */
typedef struct {
  uint64_t offset;
  uint64_t count;
  float decay; /* 0 to 1 */
} sluice_running_mean;

/* Names the elements that may be running means, ascending and without overlaps; `decay` is not
 * read. They are whole tensors of kind SLUICE_STATISTIC; others are refused. Called before
 * sluice_join(). Without it the averages of asynchronous workers fall behind, the more workers the
 * further: a stale push replaces what the others have added. */
SLUICE_API sluice_code sluice_keep_running_means(sluice_client* client,
                                                 const sluice_running_mean* means, size_t count);

/* Says how much of what was pulled is left in these elements, for the next sluice_push(): before
 * it, and after their values were written to the gradient's buffer, once. In asynchronous modes
 * sluice_push() replaces these values by what the batches have added, so do not send them early.
 * After an error write the values anew, and call this again. Elements that are not named are pushed
 * as they are.
 *
 * A decay of 1 says that no batch has changed the elements. If no worker has changed them, their
 * values on the server keep their bits, in any mode. Each range that sluice_keep_running_means()
 * has named is compared with what was pulled. If the range differs, its values are pushed. If it is
 * a count, of type SLUICE_INT64, the number that was added is pushed instead. */
SLUICE_API sluice_code sluice_set_running_means(sluice_client* client,
                                                const sluice_running_mean* means, size_t count);

/* Says what the options of a group of the optimizer are from the next sluice_push() on, until it is
 * called again: for a program with a schedule of its own. Group 0 has the optimizer's own options,
 * and group i those of groups[i - 1]. Options that are not named stay as they are. The server must
 * have kept what the new ones need since the first step: momentum where there was none is
 * SLUICE_INVALID_ARGUMENT. A step is made with the options of the worker with the lowest index that
 * contributes to it. A learning rate that changes and the server's --lr-schedule exclude each
 * other: sluice_push() then fails. */
SLUICE_API sluice_code sluice_set_options(sluice_client* client, size_t group,
                                          const sluice_option* options, size_t count);

/* Bounds the Euclidean norm of the mean gradient of the step that the next sluice_push() is part
 * of: a longer one is shortened to it, as the server's --clip-norm does. It is a finite number
 * above 0. Call it before each push. */
SLUICE_API sluice_code sluice_set_clip_norm(sluice_client* client, double norm);

/* Adds constants to the model of a client that has not joined, after sluice_set_tables() if that is
 * called. Once. What `constants` point to is copied, except the data, which must stay valid until
 * the client is freed. sluice_join() reads the data if the job has no constants yet: then these
 * become the job's. Otherwise it writes the job's there. So does a push to a server that has come
 * back with others. The server saves the job's once. What the program changes there later stays its
 * own. */
SLUICE_API sluice_code sluice_set_constants(sluice_client* client, const sluice_constant* constants,
                                            size_t count);

/* Ends this worker's part: the others no longer wait for it. */
SLUICE_API sluice_code sluice_leave(sluice_client* client);

/* The same, then waits until every worker has left, and pulls the final parameters. */
SLUICE_API sluice_code sluice_await_end(sluice_client* client);

/* After sluice_await_end(), once: sends results for the server's closing table. */
SLUICE_API sluice_code sluice_report(sluice_client* client, const char* const* names,
                                     const double* values, size_t count);

typedef struct {
  uint64_t step; /* of the parameters that the client holds now */
  /* The server's answer to the last push: 0 accepted; 1 applied: it also completed a step; 2 stale:
   * it was dropped; 3 duplicate; 4 skipped: it was not finite. */
  int32_t disposition;
  uint64_t staleness; /* of the gradient, in steps */
} sluice_round;

#define SLUICE_FOREVER (-1.0)

/* Waits for what was begun, for that many seconds or for ever. Returns its result; SLUICE_PENDING
 * if the time is over: then call it again. If nothing was begun, returns SLUICE_OK at once.
 * `round` may be NULL.
 *
 * After an error of a push, the parameters may be a mixture of two steps: do not use or save them.
 * The next push drops its gradient, and pulls. */
SLUICE_API sluice_code sluice_wait(sluice_client* client, double seconds, sluice_round* round);

typedef struct {
  const char* name;    /* as PyTorch names it: "exp_avg" */
  const float* values; /* one for each element of the vector */
} sluice_slot;

/* Begins to bring what the server's optimizer remembers of each element, of its latest step: for a
 * program that saves the optimizer's state itself. Rows of tables are not in it. sluice_wait()
 * waits.
 *   SLUICE_DEADLINE_EXCEEDED  several servers make steps too fast, which is not so in sync
 *   SLUICE_UNIMPLEMENTED      the server is too old */
SLUICE_API sluice_code sluice_pull_slots(sluice_client* client);

/* Writes `count` of the slots that were brought to `slots`, and how many steps the optimizer has
 * made, unless that is NULL. Returns how many slots there are. They are valid until the next
 * sluice_push() or sluice_pull_slots(). */
SLUICE_API size_t sluice_slots(const sluice_client* client, sluice_slot* slots, size_t count,
                               uint64_t* optimizer_steps);

/* Sends a part of the gradient of the next sluice_push() while the rest is still being computed.
 * Each element is sent once: another time is INVALID_ARGUMENT. It must not change until then:
 * sluice_push() checks that. */
SLUICE_API sluice_code sluice_send_early(sluice_client* client, uint64_t offset, uint64_t count);

/* Drops the gradient of which parts were sent early. */
SLUICE_API sluice_code sluice_give_up_early(sluice_client* client);

/* Adds bytes to the next push for the program that serves: at most 8 pieces of 64 KiB together. */
SLUICE_API sluice_code sluice_attach(sluice_client* client, const char* type, const void* data,
                                     size_t size);

typedef struct {
  uint32_t index;              /* this worker's place, from 0 on */
  uint32_t workers;            /* that were launched: together with index, which data to take */
  uint64_t pushes_before;      /* of earlier processes in this place: batches to skip */
  uint64_t step;               /* of the parameters that the client holds */
  double learning_rate_factor; /* of the server's schedule at that step: for local steps */
  /* 0: an error has left a mixture of two steps in the parameters, or, if they share a buffer with
   * the gradient, perhaps a gradient. */
  int32_t complete;
  uint64_t constants_written; /* how often the job's values were written to the constants' data */
  int32_t step_to_take;       /* see sluice_set_model() */
} sluice_status;

/* What holds since the last sluice_wait() that has ended a call, also by an error; all 0 before
 * sluice_join() has been waited for. */
SLUICE_API sluice_status sluice_client_status(const sluice_client* client);

/* What launches of the job that are over have taken of the data (Welcome.earlier_launches).
 * For each launch: its number of workers, then how often each of them has pushed, by its index.
 * These batches are taken, and the workers share those that are left (worker/data/batch_deal.h).
 * Returns how many numbers there are, and writes at most `capacity` of them. Holds as the status
 * does. */
SLUICE_API uint64_t sluice_earlier_launches(const sluice_client* client, uint64_t* numbers,
                                            uint64_t capacity);

/* ---- Tables ---- */

/* How the rows of a table begin: with zeros, evenly in [-scale, scale], or normally distributed
 * around 0 with the standard deviation `scale`. */
enum { SLUICE_ROWS_ZERO = 0, SLUICE_ROWS_UNIFORM = 1, SLUICE_ROWS_NORMAL = 2 };

/* By what a row's sum of gradients is divided, if the job's reduction is a mean: by all that the
 * step counts, or by those that have the row. */
enum { SLUICE_ALL_CONTRIBUTORS = 0, SLUICE_ROW_CONTRIBUTORS = 1 };

/* A table of rows, which are named by ids. Its rows are on the server, or on several. A row takes
 * memory there once a gradient has touched it. proto/sluice/v1/table.proto tells what the fields
 * mean. */
typedef struct {
  const char* name;
  uint32_t width;      /* elements of a row */
  int32_t initializer; /* SLUICE_ROWS_ZERO … */
  float scale;
  uint64_t seed;
  int32_t divisor; /* SLUICE_ALL_CONTRIBUTORS … */
  uint32_t admit_after;
  uint64_t evict_after;
  uint64_t max_rows;
  const char* optimizer; /* the table's own, with the options below; NULL: the model's */
  const sluice_option* options;
  size_t option_count;
} sluice_table;

/* Adds tables to the model of a client that has not joined. Once. What `tables` point to is
 * copied. */
SLUICE_API sluice_code sluice_set_tables(sluice_client* client, const sluice_table* tables,
                                         size_t count);

/* Begins to pull rows of the table with that index, and to write them to `rows`, one after the
 * other: `count` times the table's width. `ids` are ascending, each once, and are copied. A row
 * that does not exist has its first value. The rows are of a step that is not earlier than that of
 * the parameters; after sluice_await_end(), and until sluice_report(), of the last step.
 * sluice_wait() waits for them; until then `rows` must stay valid. */
SLUICE_API sluice_code sluice_pull_rows(sluice_client* client, uint32_t table, const uint64_t* ids,
                                        size_t count, float* rows);

/* Begins to pull rows that the table's next sluice_pull_rows() is to write, and returns at once:
 * while they are on their way, any other function may be called, also sluice_push(). That pull uses
 * them if it has the same `ids`, which are as above; otherwise they are given up. Rows that turn
 * out to be of a step before that of the parameters are pulled again. With several servers, so are
 * those that another pull or push has followed. A table has one prefetch: the next takes its place;
 * without ids there is none. What goes wrong with it is an error of the pull. */
SLUICE_API sluice_code sluice_prefetch_rows(sluice_client* client, uint32_t table,
                                            const uint64_t* ids, size_t count);

/* Sets the gradients of rows of that table, which the next sluice_push() pushes beside the model's
 * gradient: they count together, or not at all. They replace those that were set before; without
 * ids there are none. `ids` as above, and `gradients` as many floats as `rows` above. Both are
 * copied. A push that fails drops them: set them again before the next. */
SLUICE_API sluice_code sluice_set_row_gradients(sluice_client* client, uint32_t table,
                                                const uint64_t* ids, size_t count,
                                                const float* gradients);

/* ---- Follower ---- */

/* Sees the steps of a job without taking part: no step waits for it. The server stays up until its
 * followers have seen the last step. */
typedef struct sluice_follower sluice_follower;

/* `job` is that of sluice_connect(), or a worker's. `parameters` is memory for as many floats as
 * the model has elements; the calls below write it. `model` is that of the workers; what it points
 * to is copied. */
SLUICE_API sluice_code sluice_follower_create(sluice_job* job, const sluice_model* model,
                                              sluice_buffer* parameters,
                                              sluice_follower** follower);

/* Leaves the job. Waits for what was begun, which may take until the job's next step. NULL is
 * allowed. */
SLUICE_API void sluice_follower_free(sluice_follower* follower);

/* Adds tables to the model of a follower, before its first sluice_follow(). Once. What `tables`
 * point to is copied. Their optimizers do not matter. */
SLUICE_API sluice_code sluice_follower_set_tables(sluice_follower* follower,
                                                  const sluice_table* tables, size_t count);

/* Adds constants to the model of a follower, as sluice_set_constants() does. sluice_follow() writes
 * the job's values there. */
SLUICE_API sluice_code sluice_follower_set_constants(sluice_follower* follower,
                                                     const sluice_constant* constants,
                                                     size_t count);

/* Says which rows of a table the next calls of sluice_follow() bring beside the parameters, and of
 * the same step: instead of those that were said before; without ids there are none. `ids` are
 * ascending, each once, and are copied. `rows` is memory for `count` times the table's width, and
 * stays valid until it is replaced or the follower is freed. At most 2,800,000 rows in all. */
SLUICE_API sluice_code sluice_follow_rows(sluice_follower* follower, uint32_t table,
                                          const uint64_t* ids, size_t count, float* rows);

/* Begins to wait until the job has made `every` (at least 1) more steps than at the last call, or
 * has ended, and to pull the parameters of its newest step. The first call waits for the server and
 * for the job's first parameters, each as long as --connect-timeout. What was begun must be waited
 * for before the next call. */
SLUICE_API sluice_code sluice_follow(sluice_follower* follower, uint64_t every);

typedef struct {
  uint64_t step;              /* of the parameters that the buffer holds now */
  uint64_t incarnation;       /* of the server: one that was killed may have lost steps */
  int32_t ended;              /* 1: the job has ended, and its last step was seen before */
  uint64_t constants_written; /* as in sluice_status */
} sluice_followed;

/* Waits for what was begun, for that many seconds or for ever, as sluice_wait() does. The buffer
 * holds one step, except after an error and while a call is under way.
 *   SLUICE_UNAVAILABLE  the server is gone and did not come back, or no worker has joined it */
SLUICE_API sluice_code sluice_follower_wait(sluice_follower* follower, double seconds,
                                            sluice_followed* followed);

/* ---- A module on a model server ----
 *
 * A trainer that holds no parameters lets a model server compute forward and backward; there it is
 * a worker of the job: worker/torch/remote_module/README.md. Both may be in any language. */

/* The types of elements, as in module_server.proto. SLUICE_ELEMENT_BOOL has bytes of 0 or 1. */
enum {
  SLUICE_ELEMENT_FLOAT32 = 1,
  SLUICE_ELEMENT_FLOAT64 = 2,
  SLUICE_ELEMENT_FLOAT16 = 3,
  SLUICE_ELEMENT_BFLOAT16 = 4,
  SLUICE_ELEMENT_INT64 = 5,
  SLUICE_ELEMENT_INT32 = 6,
  SLUICE_ELEMENT_UINT8 = 7,
  SLUICE_ELEMENT_BOOL = 8
};

typedef struct {
  const char* name; /* of the parameter, if it is a gradient that was asked for by name */
  int32_t element;  /* SLUICE_ELEMENT_FLOAT32 ... */
  const int64_t* shape;
  size_t dimensions;
  int32_t requires_grad; /* an input whose gradient is wanted, or an output that has one */
  const void* data;      /* row-major, little-endian */
  size_t size;           /* bytes, as many as type and shape say */
} sluice_module_tensor;

/* What a trainer asks. The tensors of one request or reply have at most 64 MiB together; with all
 * texts and names it has at most 64 MiB + 64 KiB. Each tensor has as many bytes as its type and
 * shape say. After a BACKWARD that has failed, the next STEP pushes nothing, and fails with that
 * error. */
enum {
  SLUICE_MODULE_FORWARD = 1,       /* of the tensors; gives one output */
  SLUICE_MODULE_BACKWARD = 2,      /* of an output's gradient; gives those of inputs */
  SLUICE_MODULE_DROP_GRADIENT = 3, /* sets this trainer's gradient to 0 */
  SLUICE_MODULE_STEP = 4,          /* pushes it, and waits for the job's mode; gives a round */
  SLUICE_MODULE_LEAVE = 5,         /* ends this trainer's part */
  SLUICE_MODULE_GRADIENTS = 6,     /* gives this trainer's gradient, by names */
  SLUICE_MODULE_CALL = 7           /* of a method that the server offers; gives values */
};

/* Fields that a kind does not name are 0. module_server.proto tells more of each. */
typedef struct {
  int32_t kind;
  uint64_t call;      /* FORWARD: a number of the trainer's choice. BACKWARD: that of its forward */
  int32_t training;   /* FORWARD, CALL: the mode of the module */
  int32_t keep;       /* FORWARD: a BACKWARD will follow */
  const char* method; /* CALL: its name */
  /* CALL: how the arguments are made of the tensors; "" or NULL: they are. It is JSON, in which the
   * numbers NaN, Infinity and -Infinity may stand besides. */
  const char* plain;
  const char* const* names; /* GRADIENTS: of these parameters, each once; none: of all */
  size_t name_count;
  const sluice_module_tensor* tensors; /* FORWARD, BACKWARD (one), CALL */
  size_t tensor_count;
  uint32_t samples;  /* STEP: in the batch, at least 1 */
  const float* loss; /* STEP: the batch's mean; may be NULL */
  int32_t stay;      /* LEAVE: wait for all workers, and take the final parameters */
} sluice_module_request;

typedef struct {
  const sluice_module_tensor* tensors;
  size_t tensor_count;
  const char* plain;   /* CALL: as in the request */
  sluice_round round;  /* STEP */
  sluice_code code;    /* what follows is for a server's error; 0 at a trainer */
  const char* reason;  /* a word that parameter_server.proto lists; may be NULL */
  const char* message; /* a sentence */
} sluice_module_reply;

typedef struct {
  uint32_t index; /* as in sluice_status */
  uint32_t workers;
  uint64_t pushes_before;
} sluice_module_place;

typedef struct sluice_module sluice_module;

/* Makes a trainer, of the job's worker name, for the model server at `address`; NULL: at that of
 * --server. One thread at a time uses it. */
SLUICE_API sluice_code sluice_module_create(const sluice_job* job, const char* address,
                                            sluice_module** module);

/* Waits for what was begun. A trainer that has not left counts as lost. A process that calls
 * exit(), or returns from main(), without having freed it leaves then if its exit code is 0, and is
 * lost otherwise. NULL is allowed. */
SLUICE_API void sluice_module_free(sluice_module* module);

/* Begins to wait for the model server, up to --connect-timeout, and to enter. Called first, once.
 *   SLUICE_UNAVAILABLE  there is none */
SLUICE_API sluice_code sluice_module_enter(sluice_module* module);

/* Begins a request, of which it copies all. */
SLUICE_API sluice_code sluice_module_ask(sluice_module* module,
                                         const sluice_module_request* request);

/* Waits for what was begun, as sluice_wait() does. What `reply` shows is valid until the next
 * sluice_module_ask(). An error of a request leaves the trainer usable, unless the call to the
 * model server has ended. The error of a BACKWARD whose inputs need no gradient comes with the next
 * request.
 *   SLUICE_UNAVAILABLE  the model server is gone */
SLUICE_API sluice_code sluice_module_wait(sluice_module* module, double seconds,
                                          sluice_module_reply* reply);

/* This trainer's place among the workers of the job, once it has entered. */
SLUICE_API sluice_module_place sluice_module_client_place(const sluice_module* module);

/* The functions of a model server. Each trainer has a session and a thread of the host, which calls
 * them; those of one session are called one at a time. They may take time, and throw nothing. */
typedef struct {
  void* context;
  /* Makes the session of a trainer that enters, and writes its place. Or sets the reply's code, its
   * reason and its message, and returns NULL. */
  void* (*open)(void* context, const char* trainer, sluice_module_place* place,
                sluice_module_reply* reply);
  /* Answers a request, or sets the reply's code and so on. The reply is all 0 before. What it shows
   * stays valid until the session's next call. After a BACKWARD that has failed, the session gets
   * DROP_GRADIENT in place of the next STEP. */
  void (*answer)(void* session, const sluice_module_request* request, sluice_module_reply* reply);
  /* Ends the session. If it has not left, the trainer is lost. */
  void (*close)(void* session);
} sluice_module_functions;

typedef struct sluice_module_host sluice_module_host;

/* The job of one more worker in this process, with a name of its own: for a trainer's session. The
 * server chooses its index. `job` may be the job of the process that serves. Freed by
 * sluice_job_free(), before or after `job`. */
SLUICE_API sluice_code sluice_job_worker(const sluice_job* job, const char* name,
                                         sluice_job** worker);

/* Listens for trainers at `address`: host:port, of which port 0 is any free one, or unix:/path. It
 * returns at once, so that a process may also serve the job: sluice_serve().
 * They need the job's token; beyond this machine the flags of TLS are needed. At most
 * `max_trainers` enter at once. `trainers` are awaited by sluice_module_host_wait(); 0: as many as
 * the job has workers. The functions stay valid until the host is freed.
 *   SLUICE_UNAVAILABLE  it cannot listen there */
SLUICE_API sluice_code sluice_module_serve(const sluice_job* job, const char* address,
                                           uint32_t max_trainers, uint32_t trainers,
                                           const sluice_module_functions* functions,
                                           sluice_module_host** host);

/* Where it listens. Valid until it is freed. */
SLUICE_API const char* sluice_module_host_address(const sluice_module_host* host);

/* Waits until all trainers have come and have left, or were gone for --connect-timeout: SLUICE_OK.
 * SLUICE_PENDING if the time is over. */
SLUICE_API sluice_code sluice_module_host_wait(sluice_module_host* host, double seconds);

/* Ends the calls of trainers that are still there, and waits for the functions that run. NULL is
 * allowed. */
SLUICE_API void sluice_module_host_free(sluice_module_host* host);

/* ---- Checkpoint ---- */

/* A checkpoint that one server or several have saved. Reading it needs no job. A checkpoint is used
 * by one thread at a time. */
typedef struct sluice_checkpoint sluice_checkpoint;

/* `where` is the checkpoint's file, or the servers' --checkpoint-dir: then its newest. If each of
 * several servers had a directory of its own, those of the others follow that of the first one,
 * with commas between.
 *   SLUICE_NOT_FOUND         there is no such file, or the directory has no checkpoint
 *   SLUICE_INVALID_ARGUMENT  it is one server's part of a checkpoint
 *   SLUICE_DATA_LOSS         a file is missing, damaged, or of another checkpoint; the message
 *                            names it */
SLUICE_API sluice_code sluice_checkpoint_open(const char* where, sluice_checkpoint** checkpoint);

/* NULL is allowed. */
SLUICE_API void sluice_checkpoint_free(sluice_checkpoint* checkpoint);

/* What the next two return is valid until the checkpoint is freed. */
SLUICE_API const sluice_model* sluice_checkpoint_model(const sluice_checkpoint* checkpoint);
/* The file that names it. */
SLUICE_API const char* sluice_checkpoint_path(const sluice_checkpoint* checkpoint);
SLUICE_API uint64_t sluice_checkpoint_step(const sluice_checkpoint* checkpoint);

/* Writes the parameters, as many floats as the model has elements, and checks every byte of the
 * files but those of rows. After an error `parameters` must not be used. */
SLUICE_API sluice_code sluice_checkpoint_read(sluice_checkpoint* checkpoint, float* parameters);

/* Reads the tensors that are not trained, which the server has saved once for all checkpoints, and
 * checks every byte of their file. `constants` are valid until the checkpoint is freed; a model
 * without such tensors has none. */
SLUICE_API sluice_code sluice_checkpoint_read_constants(sluice_checkpoint* checkpoint,
                                                        const sluice_constant** constants,
                                                        size_t* count);

/* The rows of a table, one after the other, in ascending order of their ids. */
typedef struct {
  const uint64_t* ids;
  const float* rows;
  size_t count;
  uint32_t width; /* floats of a row */
} sluice_saved_rows;

/* Reads the table of that name, without the slots of its optimizer, and checks every byte of all
 * files. `rows` is valid until the next call, or until the checkpoint is freed.
 *   SLUICE_NOT_FOUND  there is no such table; the message names those that there are */
SLUICE_API sluice_code sluice_checkpoint_read_table(sluice_checkpoint* checkpoint,
                                                    const char* table, sluice_saved_rows* rows);

/* The order of an epoch's rows, the same as sluice_train's: writes a permutation of [0, size),
 * drawn from (seed, epoch), to `order`. Step g of W workers with batches of B takes the next B x W
 * rows from g x B x W on; worker r the r-th block of B of them. */
SLUICE_API sluice_code sluice_order(uint64_t size, uint64_t seed, uint64_t epoch, int64_t* order);

#ifdef __cplusplus
}
#endif

#endif /* SLUICE_WORKER_C_SLUICE_H_ */
