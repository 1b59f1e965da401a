/* Reads a checkpoint: checkpoint_reader WHERE TABLE. Prints its step, the tensors with their first
 * values, and the rows of the table; or the error. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/c/sluice.h"

static int fail(const char* what) {
  printf("%s: %s\n", what, sluice_error_message());
  return 1;
}

static size_t elements_of(const sluice_tensor* tensor) {
  size_t elements = 1;
  for (size_t i = 0; i < tensor->dimensions; ++i) elements *= tensor->shape[i];
  return elements;
}

static size_t size_of(const sluice_model* model) {
  size_t size = 0;
  for (size_t i = 0; i < model->count; ++i) size += elements_of(&model->tensors[i]);
  return size;
}

static int print_values(sluice_checkpoint* checkpoint) {
  const sluice_model* model = sluice_checkpoint_model(checkpoint);
  float* values = malloc(sizeof(float) * size_of(model));
  const sluice_code code = sluice_checkpoint_read(checkpoint, values);
  if (code == SLUICE_OK) {
    const float* first = values;
    for (size_t i = 0; i < model->count; ++i) {
      printf("%s %g\n", model->tensors[i].name, *first);
      first += elements_of(&model->tensors[i]);
    }
  }
  free(values);
  return code == SLUICE_OK ? 0 : fail("values");
}

static int print_rows(sluice_checkpoint* checkpoint, const char* table) {
  sluice_saved_rows rows;
  if (sluice_checkpoint_read_table(checkpoint, table, &rows) != SLUICE_OK) return fail("rows");
  for (size_t i = 0; i < rows.count; ++i) {
    printf("row %" PRIu64 ":", rows.ids[i]);
    for (uint32_t k = 0; k < rows.width; ++k) printf(" %g", rows.rows[i * rows.width + k]);
    printf("\n");
  }
  return 0;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  sluice_checkpoint* checkpoint = NULL;
  if (sluice_checkpoint_open(NULL, &checkpoint) == SLUICE_OK) return 3;
  fail("no name");
  if (sluice_checkpoint_open(argv[1], &checkpoint) != SLUICE_OK) return fail("open");
  const char* slash = strrchr(sluice_checkpoint_path(checkpoint), '/');
  printf("step %" PRIu64 " of %s\n", sluice_checkpoint_step(checkpoint), slash + 1);
  int failed = print_values(checkpoint);
  if (failed == 0) failed = print_rows(checkpoint, argv[2]);
  sluice_checkpoint_free(checkpoint);
  return failed;
}
