/* A worker in C that finds the least value of (x - 3)^2. */
#include <sluice/sluice.h>
#include <stdio.h>

static int wait_for(sluice_client* client, sluice_code begun) {
  return begun == SLUICE_OK && sluice_wait(client, SLUICE_FOREVER, NULL) == SLUICE_OK;
}

int main(int argc, char** argv) {
  sluice_job* job;
  if (sluice_start(&argc, argv, &job) != SLUICE_OK) return sluice_report_error(argv[0]);
  if (sluice_is_server(job)) return sluice_serve(job);

  float x = 0;
  const sluice_tensor tensor = {"x", NULL, 0, SLUICE_PARAMETER, SLUICE_FLOAT32};
  const sluice_model model = {&tensor, 1};
  const sluice_option rate = {"learning_rate", 0.25};
  const sluice_optimizer sgd = {"sgd", &rate, 1, NULL, 0};
  sluice_buffer* gradient = sluice_buffer_create(1);
  sluice_client* client;
  if (sluice_client_create(job, &model, &sgd, &x, gradient, &client) != SLUICE_OK) {
    return sluice_report_error(argv[0]);
  }
  int done = wait_for(client, sluice_join(client));
  for (int step = 0; done && step < 30; ++step) {
    const float loss = (x - 3) * (x - 3);
    sluice_buffer_floats(gradient)[0] = 2 * (x - 3);
    done = wait_for(client, sluice_push(client, 1, &loss));
  }
  done = done && wait_for(client, sluice_leave(client));
  const int code = done ? 0 : sluice_report_error(argv[0]);
  if (done && sluice_speaks(job)) printf("x = %.3f\n", x);
  sluice_client_free(client);
  sluice_buffer_free(gradient);
  sluice_job_free(job);
  return code;
}
