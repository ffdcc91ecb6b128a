/* The limits of TCP between two ranks, without blocking, over COMPARE_SOCKETS connections: both send and receive as
 * many bytes as a call has at the same time (stream), or half as many (stream_half); rank 0 alone sends them (one_way);
 * and a message of 8 bytes goes there and back (ping). COMPARE_CC names the congestion control. Rank 0 listens on
 * COMPARE_ADDRESS.
 */
#include "protocol.h" /* first: it asks for GNU's declarations */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

enum { SOCKETS_MAX = 16, CHUNK = 1 << 20 };
static int sockets[SOCKETS_MAX], socket_count;

static void must(int ok, const char* what) {
  if (!ok) {
    perror(what);
    die("TCP alone does not work");
  }
}

static void tune(int fd) {
  const int on = 1;
  const char* control = setting("COMPARE_CC", "");
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (*control != 0) must(setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, control, strlen(control)) == 0, control);
}

static void join_up(void) {
  struct sockaddr_in at;
  socklen_t bytes = sizeof at;
  memset(&at, 0, sizeof at);
  at.sin_family = AF_INET;
  must(inet_pton(AF_INET, setting("COMPARE_ADDRESS", "127.0.0.1"), &at.sin_addr) == 1, "COMPARE_ADDRESS");
  socket_count = atoi(setting("COMPARE_SOCKETS", "1"));
  if (rank_count != 2 || socket_count < 1 || socket_count > SOCKETS_MAX) die("two ranks and 1 to 16 sockets");
  if (my_rank == 0) {
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    must(bind(listener, (struct sockaddr*)&at, sizeof at) == 0 && listen(listener, SOCKETS_MAX) == 0, "listen");
    must(getsockname(listener, (struct sockaddr*)&at, &bytes) == 0, "getsockname");
    memcpy(board->blob, &at.sin_port, sizeof at.sin_port);
    align_ranks();
    for (int i = 0; i < socket_count; ++i) must((sockets[i] = accept(listener, NULL, NULL)) >= 0, "accept");
    close(listener);
  } else {
    align_ranks();
    memcpy(&at.sin_port, board->blob, sizeof at.sin_port);
    for (int i = 0; i < socket_count; ++i) {
      must((sockets[i] = socket(AF_INET, SOCK_STREAM, 0)) >= 0, "socket");
      must(connect(sockets[i], (struct sockaddr*)&at, sizeof at) == 0, "connect");
    }
  }
  for (int i = 0; i < socket_count; ++i) tune(sockets[i]);
}

static size_t moved(ssize_t result) {
  if (result > 0) return (size_t)result;
  must(result < 0 && (errno == EAGAIN || errno == EINTR), "the connection");
  if (rank_crowded) sched_yield();
  return 0;
}

/* Socket i carries the i-th share of the buffer, where this rank sends, and where it receives. */
static void stream(size_t bytes, int sends, int receives) {
  size_t out[SOCKETS_MAX] = {0}, in[SOCKETS_MAX] = {0};
  for (size_t left = (size_t)(sends + receives) * bytes; left > 0;)
    for (int i = 0; i < socket_count; ++i) {
      const size_t begin = bytes * (size_t)i / (size_t)socket_count;
      const size_t share = bytes * (size_t)(i + 1) / (size_t)socket_count - begin;
      if (sends && out[i] < share) {
        const size_t rest = share - out[i], most = rest < CHUNK ? rest : CHUNK;
        const size_t sent = moved(send(sockets[i], (char*)send_buffer + begin + out[i], most, MSG_DONTWAIT));
        out[i] += sent;
        left -= sent;
      }
      if (receives && in[i] < share) {
        const size_t rest = share - in[i], most = rest < CHUNK ? rest : CHUNK;
        const size_t got = moved(recv(sockets[i], (char*)recv_buffer + begin + in[i], most, MSG_DONTWAIT));
        in[i] += got;
        left -= got;
      }
    }
}

static void ping(void) {
  uint64_t word = 0;
  for (int way = 0; way < 2; ++way) {
    size_t done = 0;
    if (way == my_rank)
      while (done == 0) done = moved(send(sockets[0], &word, sizeof word, MSG_DONTWAIT));
    else
      while (done < sizeof word) done += moved(recv(sockets[0], (char*)&word + done, sizeof word - done, MSG_DONTWAIT));
  }
}

static int supports(Kind kind, size_t bytes) {
  (void)bytes;
  return kind == STREAM || kind == STREAM_HALF || kind == ONE_WAY || kind == PING;
}
static void call(Kind kind, size_t bytes) {
  if (kind == STREAM) stream(bytes, 1, 1);
  if (kind == STREAM_HALF) stream(bytes / sizeof(float) / 2 * sizeof(float), 1, 1);
  if (kind == ONE_WAY) stream(bytes, my_rank == 0, my_rank == 1);
  if (kind == PING) ping();
}

int main(void) {
  const Library library = {supports, NULL, NULL, call, align_ranks, 0};
  join_board(atoi(setting("COMPARE_RANK", "-1")), atoi(setting("COMPARE_RANKS", "-1")));
  join_up();
  run(&library);
  return 0;
}
