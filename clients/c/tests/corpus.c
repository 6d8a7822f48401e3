/* Runs the harness of libFuzzer over files, as an ordinary program: corpus FILE... */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *content, size_t length);

int main(int count, char **names) {
  for (int at = 1; at < count; at++) {
    FILE *file = fopen(names[at], "rb");
    uint8_t *content = malloc(1 << 20);
    if (!file || !content) return perror(names[at]), 1;
    LLVMFuzzerTestOneInput(content, fread(content, 1, 1 << 20, file));
    free(content);
    fclose(file);
  }
  return count == 1;
}
