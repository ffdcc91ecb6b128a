// Any bytes as what a launcher answers to PMI-1 or PMI-2, one answer after the other. The first byte says to which, and
// whether answers of PMI-2 get the lengths that belong before them.
#include <sys/socket.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

#include "base/unique_fd.h"
#include "fuzz/entry.h"
#include "launch/key_value_space.h"

namespace {

using namespace tutti;

constexpr std::int64_t limit_ns = 10'000'000'000;  // never reached: where the bytes end, the descriptor does
constexpr std::size_t bytes_max = 60'000;          // what a socket takes before somebody reads
enum Kind : unsigned { pmi1, pmi2, pmi2_framed, kinds };

void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

void check(const Error& error) {
  expect(error.code == Code::remote || error.code == Code::invalid_usage || error.code == Code::system,
         "refused with another code");
  expect(!error.what.empty(), "refused without a word");
}

/// The first line is the answer to the first words, which have no length.
std::string framed(std::string_view text) {
  std::string all(text.substr(0, text.find('\n')));
  text.remove_prefix(all.size());
  all += '\n';
  while (!text.empty()) {
    text.remove_prefix(1);
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size());
    all += fmt::format("{:<6}{}", line.size(), line);
  }
  return all;
}

/// All that a start asks; gives up at the first error, as nothing else can come after it.
void converse(KeyValueSpace& space, std::size_t bytes) {
  const std::int64_t deadline = real_system().now_ns() + limit_ns;
  if (const auto put = space.put("tutti-root", "10.0.0.1:4711", deadline); !put) return check(put.error());
  if (const auto oversubscribed = space.fence(deadline); !oversubscribed) return check(oversubscribed.error());
  const auto got = space.get(0, "tutti-root", deadline);
  if (!got) return check(got.error());
  expect(got->size() <= bytes, "a value that was never said");
  const auto again = space.get(1, "tutti-root", deadline);
  if (!again) check(again.error());
}

}  // namespace

/// A value that was said, or words about what is wrong; and an end, whatever was said.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const unsigned kind = data[0] % kinds;
  const std::string_view given(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string text = kind == pmi2_framed ? framed(given) : std::string(given);
  int ends[2];
  expect(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "no socket pair");
  const UniqueFd client(ends[0]);
  const UniqueFd server(ends[1]);
  (void)::send(server.get(), text.data(), std::min(text.size(), bytes_max), MSG_DONTWAIT | MSG_NOSIGNAL);
  ::shutdown(server.get(), SHUT_WR);
  LaunchInfo launch{.rank = 0, .ranks = 2};
  launch.pmi_fd = client.get();
  launch.pmi_job = "7.0";
  const std::int64_t deadline = real_system().now_ns() + limit_ns;
  auto space = kind == pmi1 ? open_pmi1(real_system(), launch, deadline) : open_pmi2(real_system(), launch, deadline);
  if (space)
    converse(**space, text.size());
  else
    check(space.error());
  return 0;
}

std::vector<std::string> fuzz_examples() {
  const std::string first =
      "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n"
      "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n"
      "cmd=my_kvsname kvsname=kvs_1_0\n"
      "cmd=put_result rc=0 msg=success\n"
      "cmd=barrier_out\n"
      "cmd=get_result rc=0 msg=success value=10.0.0.1:4711\n"
      "cmd=get_result rc=-1 msg=key_not_found value=unknown\n"
      "cmd=finalize_ack\n";
  const std::string second =
      "cmd=response_to_init rc=0 pmi_version=2 pmi_subversion=0\n"
      "cmd=fullinit-response;rc=0;pmi-version=2;pmi-subversion=0;rank=0;size=2;appnum=-1;\n"
      "cmd=kvs-put-response;rc=0;\n"
      "cmd=kvs-fence-response;rc=0;\n"
      "cmd=kvs-get-response;rc=0;found=TRUE;value=10.0.0.1:4711;\n"
      "cmd=kvs-get-response;rc=0;found=FALSE;\n"
      "cmd=finalize-response;rc=0;";
  return {std::string(1, static_cast<char>(pmi1)) + first, std::string(1, static_cast<char>(pmi2)) + framed(second),
          std::string(1, static_cast<char>(pmi2_framed)) + second};
}
