/* Data-parallel training: ranks share the images of every batch, average their gradients, and so stay alike.
 *
 * Usage: digits [--ranks N] [--data FILE]
 * Trains on N ranks (default 2), then on one. Exit status 0 only if all ranks end with the same weights to the last
 * bit, at least 93 % of the test images are recognised, and one rank does as well as N. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <tutti/tutti.h>
#include <unistd.h>
#include <zlib.h>

enum { PIXELS = 64, HIDDEN = 48, CLASSES = 10, IMAGES = 1797, BATCH = 96, EPOCHS = 25, RANKS_MAX = 64, LIMIT_S = 120 };

typedef struct {
  float w1[HIDDEN][PIXELS], b1[HIDDEN], w2[CLASSES][HIDDEN], b2[CLASSES];
} Weights;
enum { WEIGHTS = sizeof(Weights) / sizeof(float) };

typedef struct {
  float pixels[PIXELS];
  int digit;
} Image;

/* Shared by a run's processes: the id on the way in, the outcome on the way out. */
typedef struct {
  tuttiUniqueId id;
  volatile int id_is_set;
  double accuracy;
  int weights_differ;
} Board;

static Image images[IMAGES]; /* every fifth one is a test image */

static void check(tuttiResult_t result, const char* call) {
  if (result == tuttiSuccess) return;
  fprintf(stderr, "digits: %s: %s: %s\n", call, tuttiGetErrorString(result), tuttiGetLastError(NULL));
  exit(1);
}

static int read_images(const char* path) {
  char line[512];
  int count = 0;
  gzFile file = gzopen(path, "r");
  if (file == NULL) return 0;
  for (; count < IMAGES && gzgets(file, line, sizeof line) != NULL; ++count) {
    char* at = line;
    for (int i = 0; i < PIXELS; ++i, ++at) images[count].pixels[i] = strtof(at, &at) / 16;
    images[count].digit = (int)strtol(at, NULL, 10);
    if (images[count].digit < 0 || images[count].digit >= CLASSES) break;
  }
  gzclose(file);
  return count == IMAGES;
}

/* Pseudo-random numbers that are the same everywhere. */
static unsigned next_random(unsigned* state) {
  return (*state = *state * 1664525u + 1013904223u) >> 8;
}

static void init_weights(Weights* weights) {
  unsigned state = 1;
  float* all = (float*)weights;
  for (int i = 0; i < WEIGHTS; ++i) all[i] = ((float)next_random(&state) / (1 << 24) - 0.5f) * 0.3f;
}

/* Fills hidden and the probability of each class. */
static void forward(const Weights* w, const Image* image, float* hidden, float* probability) {
  float largest = -INFINITY, sum = 0;
  for (int h = 0; h < HIDDEN; ++h) {
    float value = w->b1[h];
    for (int i = 0; i < PIXELS; ++i) value += w->w1[h][i] * image->pixels[i];
    hidden[h] = value > 0 ? value : 0;
  }
  for (int c = 0; c < CLASSES; ++c) {
    probability[c] = w->b2[c];
    for (int h = 0; h < HIDDEN; ++h) probability[c] += w->w2[c][h] * hidden[h];
    if (probability[c] > largest) largest = probability[c];
  }
  for (int c = 0; c < CLASSES; ++c) sum += probability[c] = expf(probability[c] - largest);
  for (int c = 0; c < CLASSES; ++c) probability[c] /= sum;
}

/* Adds one image's gradient of the cross entropy, times scale. */
static void add_gradient(const Weights* w, const Image* image, float scale, Weights* gradient) {
  float hidden[HIDDEN], error[CLASSES], back[HIDDEN] = {0};
  forward(w, image, hidden, error);
  error[image->digit] -= 1;
  for (int c = 0; c < CLASSES; ++c) {
    const float e = error[c] * scale;
    gradient->b2[c] += e;
    for (int h = 0; h < HIDDEN; ++h) {
      gradient->w2[c][h] += e * hidden[h];
      back[h] += e * w->w2[c][h];
    }
  }
  for (int h = 0; h < HIDDEN; ++h) {
    if (hidden[h] <= 0) continue;
    gradient->b1[h] += back[h];
    for (int i = 0; i < PIXELS; ++i) gradient->w1[h][i] += back[h] * image->pixels[i];
  }
}

static double test_accuracy(const Weights* weights) {
  float hidden[HIDDEN], probability[CLASSES];
  int right = 0, tested = 0;
  for (int i = 0; i < IMAGES; i += 5, ++tested) {
    int best = 0;
    forward(weights, &images[i], hidden, probability);
    for (int c = 1; c < CLASSES; ++c)
      if (probability[c] > probability[best]) best = c;
    right += best == images[i].digit;
  }
  return (double)right / tested;
}

/* One step on images order[0..count): every rank takes its share of them, the average makes all shares one batch. */
static void step(tuttiComm_t comm, int rank, int ranks, const int* order, int count, float rate, Weights* weights,
                 Weights* gradient) {
  memset(gradient, 0, sizeof *gradient);
  for (int i = rank; i < count; i += ranks)
    add_gradient(weights, &images[order[i]], (float)ranks / (float)count, gradient);
  check(tuttiAllReduce(gradient, gradient, WEIGHTS, tuttiFloat32, tuttiAvg, comm, NULL), "tuttiAllReduce");
  for (int i = 0; i < WEIGHTS; ++i) ((float*)weights)[i] -= rate * ((float*)gradient)[i];
}

static void train(tuttiComm_t comm, int rank, int ranks, Weights* weights, Weights* gradient) {
  int order[IMAGES], count = 0;
  unsigned state = 2;
  for (int i = 0; i < IMAGES; ++i)
    if (i % 5 != 0) order[count++] = i;
  for (int epoch = 0; epoch < EPOCHS; ++epoch) {
    for (int i = count - 1; i > 0; --i) {
      const int other = (int)(next_random(&state) % (unsigned)(i + 1)), kept = order[i];
      order[i] = order[other];
      order[other] = kept;
    }
    for (int at = 0; at < count; at += BATCH)
      step(comm, rank, ranks, order + at, count - at < BATCH ? count - at : BATCH, 0.3f, weights, gradient);
  }
}

static uint64_t hash_of(const Weights* weights) {
  uint64_t hash = 14695981039346656037u;
  for (size_t i = 0; i < sizeof *weights; ++i) hash = (hash ^ ((const unsigned char*)weights)[i]) * 1099511628211u;
  return hash;
}

static void run_rank(Board* board, int rank, int ranks) {
  tuttiComm_t comm = NULL;
  Weights *weights = NULL, *gradient = NULL;
  uint64_t hash, hashes[RANKS_MAX];

  alarm(LIMIT_S);
  if (rank == 0) {
    check(tuttiGetUniqueId(&board->id), "tuttiGetUniqueId");
    __atomic_store_n(&board->id_is_set, 1, __ATOMIC_RELEASE);
  }
  while (!__atomic_load_n(&board->id_is_set, __ATOMIC_ACQUIRE)) usleep(100);
  check(tuttiCommInitRank(&comm, ranks, board->id, rank), "tuttiCommInitRank");
  check(tuttiMemAlloc((void**)&weights, sizeof *weights), "tuttiMemAlloc");
  check(tuttiMemAlloc((void**)&gradient, sizeof *gradient), "tuttiMemAlloc");

  if (rank == 0) init_weights(weights);
  check(tuttiBroadcast(weights, weights, WEIGHTS, tuttiFloat32, 0, comm, NULL), "tuttiBroadcast");
  train(comm, rank, ranks, weights, gradient);

  hash = hash_of(weights);
  check(tuttiAllGather(&hash, hashes, 1, tuttiUint64, comm, NULL), "tuttiAllGather");
  if (rank == 0) {
    board->accuracy = test_accuracy(weights);
    for (int i = 1; i < ranks; ++i) board->weights_differ += hashes[i] != hashes[0];
  }
  check(tuttiMemFree(weights), "tuttiMemFree");
  check(tuttiMemFree(gradient), "tuttiMemFree");
  check(tuttiCommDestroy(comm), "tuttiCommDestroy");
}

/* Trains on as many forked ranks; the accuracy, or -1 if a rank failed or the ranks' weights differ. */
static double run(int ranks) {
  double accuracy = -1;
  int failed = 0, status = 0;
  Board* board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (board == MAP_FAILED) return -1;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      run_rank(board, rank, ranks);
      exit(0);
    }
    failed += child < 0;
  }
  while (wait(&status) > 0) failed += status != 0;
  if (board->weights_differ > 0) fprintf(stderr, "digits: weights differ on %d ranks\n", board->weights_differ);
  if (failed == 0 && board->weights_differ == 0) accuracy = board->accuracy;
  munmap(board, sizeof *board);
  return accuracy;
}

int main(int argc, char** argv) {
  const char* data = DIGITS_DATA;
  int ranks = 2;
  double together, alone;
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 < argc && strcmp(argv[i], "--ranks") == 0)
      ranks = atoi(argv[i + 1]);
    else if (i + 1 < argc && strcmp(argv[i], "--data") == 0)
      data = argv[i + 1];
    else
      ranks = 0;
  }
  if (ranks < 1 || ranks > RANKS_MAX) {
    fprintf(stderr, "usage: digits [--ranks 1..%d] [--data FILE]\n", RANKS_MAX);
    return 2;
  }
  if (!read_images(data)) {
    fprintf(stderr, "digits: %s does not hold %d images\n", data, IMAGES);
    return 2;
  }
  together = run(ranks);
  alone = run(1);
  printf("test accuracy: %.2f %% on %d ranks, %.2f %% on one\n", together * 100, ranks, alone * 100);
  return together >= 0.93 && alone >= 0.93 && fabs(together - alone) <= 0.005 ? 0 : 1;
}
