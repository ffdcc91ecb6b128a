/* The machine's own limits, in tutti's memory: all ranks copy as many bytes as a call has, with libc's memcpy (copy)
 * and with nontemporal stores (copy_nt), or store the sum of its halves to two places (sum_nt), which reads and writes
 * as much; and every rank sends one word to every other (exchange).
 */
#include "protocol.h" /* first: it asks for GNU's declarations */

#include <tutti/tutti.h>

#ifdef __x86_64__
#include <immintrin.h>

__attribute__((target("avx512f"))) static void stream_512(char* to, const char* from, size_t bytes) {
  for (size_t i = 0; i < bytes; i += 128) {
    const __m512i a = _mm512_loadu_si512(from + i), b = _mm512_loadu_si512(from + i + 64);
    _mm512_stream_si512((void*)(to + i), a);
    _mm512_stream_si512((void*)(to + i + 64), b);
  }
  _mm_sfence();
}
__attribute__((target("avx2"))) static void stream_256(char* to, const char* from, size_t bytes) {
  for (size_t i = 0; i < bytes; i += 64) {
    const __m256i a = _mm256_loadu_si256((const __m256i*)(from + i));
    const __m256i b = _mm256_loadu_si256((const __m256i*)(from + i + 32));
    _mm256_stream_si256((__m256i*)(to + i), a);
    _mm256_stream_si256((__m256i*)(to + i + 32), b);
  }
  _mm_sfence();
}
__attribute__((target("avx512f"))) static void sum_512(float* to, const float* from, size_t half) {
  for (size_t i = 0; i < half; i += 16) {
    const __m512 sum = _mm512_add_ps(_mm512_loadu_ps(from + i), _mm512_loadu_ps(from + half + i));
    _mm512_stream_ps(to + i, sum);
    _mm512_stream_ps(to + half + i, sum);
  }
  _mm_sfence();
}
__attribute__((target("avx2"))) static void sum_256(float* to, const float* from, size_t half) {
  for (size_t i = 0; i < half; i += 8) {
    const __m256 sum = _mm256_add_ps(_mm256_loadu_ps(from + i), _mm256_loadu_ps(from + half + i));
    _mm256_stream_ps(to + i, sum);
    _mm256_stream_ps(to + half + i, sum);
  }
  _mm_sfence();
}
static int can_stream(void) {
  return __builtin_cpu_supports("avx512f") || __builtin_cpu_supports("avx2");
}
static void sum_streaming(float* to, const float* from, size_t half) {
  (__builtin_cpu_supports("avx512f") ? sum_512 : sum_256)(to, from, half);
}
static void copy_streaming(char* to, const char* from, size_t bytes) {
  const size_t whole = bytes / 128 * 128; /* buffers begin on a page */
  if (__builtin_cpu_supports("avx512f"))
    stream_512(to, from, whole);
  else
    stream_256(to, from, whole);
  memcpy(to + whole, from + whole, bytes - whole);
}
#else
static int can_stream(void) {
  return 0;
}
static void copy_streaming(char* to, const char* from, size_t bytes) {
  memcpy(to, from, bytes);
}
static void sum_streaming(float* to, const float* from, size_t half) {
  for (size_t i = 0; i < half; ++i) to[i] = to[half + i] = from[i] + from[half + i];
}
#endif

#define LINES_OF_BOTH_HALVES 128

static int supports(Kind kind, size_t bytes) {
  if (kind == SUM_NT)
    return sizeof(Element) == sizeof(float) && can_stream() && bytes % LINES_OF_BOTH_HALVES == 0; /* aligned stores */
  return kind == COPY || kind == EXCHANGE || (kind == COPY_NT && can_stream());
}

static void exchange(void) {
  const uint64_t mine = board->flags[my_rank][0] + 1;
  __atomic_store_n(&board->flags[my_rank][0], mine, __ATOMIC_RELEASE);
  for (int rank = 0; rank < rank_count; ++rank)
    while (__atomic_load_n(&board->flags[rank][0], __ATOMIC_ACQUIRE) < mine)
      if (rank_crowded) sched_yield();
}

static void call(Kind kind, size_t bytes) {
  if (kind == EXCHANGE) exchange();
  if (kind == COPY) memcpy(recv_buffer, send_buffer, bytes);
  if (kind == COPY_NT) copy_streaming((char*)recv_buffer, (const char*)send_buffer, bytes);
  if (kind == SUM_NT) sum_streaming((float*)recv_buffer, (const float*)send_buffer, bytes / sizeof(float) / 2);
  __asm__ volatile("" ::: "memory"); /* keeps the compiler from removing the copy */
}

static void* allocate(size_t bytes) {
  void* at = NULL;
  if (tuttiMemAlloc(&at, bytes) != tuttiSuccess) die(tuttiGetLastError(NULL));
  return at;
}

int main(void) {
  const Library library = {supports, allocate, NULL, call, align_ranks, 0};
  join_board(atoi(setting("COMPARE_RANK", "-1")), atoi(setting("COMPARE_RANKS", "-1")));
  run(&library);
  return 0;
}
