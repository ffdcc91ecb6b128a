// What is wrong with a call is said at the call: the documented code, a sentence that says what, and nothing has
// happened.
#include <array>
#include <cstring>
#include <limits>

#include "support/call.h"
#include "support/launch_ranks.h"

namespace tutti::testing {
namespace {

constexpr auto bad = tuttiInvalidArgument;

class Arguments : public ::testing::TestWithParam<Layout> {
 protected:
  /// Body on a communicator of two; afterwards it must still work.
  static void with_comm(const std::function<void(tuttiComm_t, Seat&)>& body) {
    launch_ranks({.ranks = 2, .layout = GetParam()}, [&](Seat& seat) {
      const auto comm = seat.init_one();
      ASSERT_NE(comm, nullptr);
      body(comm, seat);
      tuttiResult_t first = tuttiInternalError;
      EXPECT_TRUE(ok(tuttiCommGetAsyncError(comm, &first)));
      EXPECT_EQ(first, tuttiSuccess);
      EXPECT_EQ(run_call({.count = 100, .seed = 3}, seat.here(), seat.ranks(), {comm}), "");
      EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
    });
  }
};
INSTANTIATE_TEST_SUITE_P(Layouts, Arguments, ::testing::Values(Layout::processes, Layout::threads),
                         [](const auto& test) { return name(test.param); });

/// What is passed: right for every call, but for what a test changes.
struct Passed {
  tuttiComm_t comm;
  const void* send;
  void* recv;
  int root;  ///< or peer
  tuttiDataType_t type = tuttiInt32;
  tuttiRedOp_t op = tuttiSum;
};

struct Function {
  const char* name;
  tuttiResult_t (*call)(const Passed& p);
  bool sends = true;
  bool receives = true;
  bool has_op = false;
  const char* root_name = nullptr;
};

constexpr std::size_t four = 4;
constexpr std::array functions = {
    Function{
        .name = "AllReduce",
        .call = [](const Passed& p) { return tuttiAllReduce(p.send, p.recv, four, p.type, p.op, p.comm, nullptr); },
        .has_op = true},
    Function{
        .name = "Reduce",
        .call =
            [](const Passed& p) { return tuttiReduce(p.send, p.recv, four, p.type, p.op, p.root, p.comm, nullptr); },
        .has_op = true,
        .root_name = "root"},
    Function{
        .name = "Broadcast",
        .call = [](const Passed& p) { return tuttiBroadcast(p.send, p.recv, four, p.type, p.root, p.comm, nullptr); },
        .root_name = "root"},
    Function{.name = "AllGather",
             .call = [](const Passed& p) { return tuttiAllGather(p.send, p.recv, four, p.type, p.comm, nullptr); }},
    Function{
        .name = "ReduceScatter",
        .call = [](const Passed& p) { return tuttiReduceScatter(p.send, p.recv, four, p.type, p.op, p.comm, nullptr); },
        .has_op = true},
    Function{.name = "Scan",
             .call = [](const Passed& p) { return tuttiScan(p.send, p.recv, four, p.type, p.op, p.comm, nullptr); },
             .has_op = true},
    Function{.name = "ExScan",
             .call = [](const Passed& p) { return tuttiExScan(p.send, p.recv, four, p.type, p.op, p.comm, nullptr); },
             .receives = false,  // on rank 0
             .has_op = true},
    Function{.name = "AllToAll",
             .call = [](const Passed& p) { return tuttiAllToAll(p.send, p.recv, four, p.type, p.comm, nullptr); }},
    Function{.name = "Gather",
             .call = [](const Passed& p) { return tuttiGather(p.send, p.recv, four, p.type, p.root, p.comm, nullptr); },
             .root_name = "root"},
    Function{
        .name = "Scatter",
        .call = [](const Passed& p) { return tuttiScatter(p.send, p.recv, four, p.type, p.root, p.comm, nullptr); },
        .root_name = "root"},
    Function{.name = "Send",
             .call = [](const Passed& p) { return tuttiSend(p.send, four, p.type, p.root, p.comm, nullptr); },
             .receives = false,
             .root_name = "peer"},
    Function{.name = "Recv",
             .call = [](const Passed& p) { return tuttiRecv(p.recv, four, p.type, p.root, p.comm, nullptr); },
             .sends = false,
             .root_name = "peer"},
};

TEST_P(Arguments, OfEveryCallAreChecked) {
  with_comm([](tuttiComm_t comm, Seat& seat) {
    std::vector<int> a(64);
    std::vector<int> b(64);
    const auto gone = seat.init_one();
    ASSERT_NE(gone, nullptr);
    EXPECT_TRUE(ok(tuttiCommDestroy(gone)));
    for (const auto& function : functions) {
      SCOPED_TRACE(function.name);
      // At its own root a rank needs both buffers.
      const Passed good{.comm = comm, .send = a.data(), .recv = b.data(), .root = seat.rank()};
      const auto refused = [&](const std::string& words, const std::function<void(Passed&)>& change) {
        Passed passed = good;
        change(passed);
        EXPECT_TRUE(fails(function.call(passed), bad, words));
      };
      if (function.sends) refused("sendbuff", [](Passed& p) { p.send = nullptr; });
      if (function.receives) refused("recvbuff", [](Passed& p) { p.recv = nullptr; });
      for (const int type : {12, 63, static_cast<int>(tuttiNumTypes), 127})  // what the bits of the enumeration hold
        refused("type " + std::to_string(type), [&](Passed& p) { p.type = static_cast<tuttiDataType_t>(type); });
      for (const int op : {5, static_cast<int>(tuttiNumOps), static_cast<int>(tuttiMaxRedOp)})
        if (function.has_op)
          refused("op " + std::to_string(op), [&](Passed& p) { p.op = static_cast<tuttiRedOp_t>(op); });
      for (const int root : {-1, 2, 1000})
        if (function.root_name != nullptr)
          refused(function.root_name + (" " + std::to_string(root)), [&](Passed& p) { p.root = root; });
      refused("comm is NULL", [](Passed& p) { p.comm = nullptr; });
      refused("comm", [&](Passed& p) { p.comm = gone; });
    }
  });
}

TEST_P(Arguments, CountsThatDoNotFitAreRefused) {
  with_comm([](tuttiComm_t comm, Seat&) {
    std::vector<std::uint64_t> x(8);
    auto* const s = x.data();
    auto* const r = x.data() + 4;
    const std::size_t most = std::numeric_limits<std::size_t>::max();
    const auto type = tuttiUint64;
    EXPECT_TRUE(fails(tuttiAllReduce(s, r, most / 4, type, tuttiSum, comm, nullptr), bad, "count"));
    EXPECT_TRUE(fails(tuttiAllReduce(s, r, most / 8 + 1, type, tuttiSum, comm, nullptr), bad, "count"));
    EXPECT_TRUE(fails(tuttiAllGather(s, r, most / 8, type, comm, nullptr), bad, "count"));
    EXPECT_TRUE(fails(tuttiReduceScatter(s, r, most / 8, type, tuttiSum, comm, nullptr), bad, "count"));
    EXPECT_TRUE(fails(tuttiAllToAll(s, r, most / 12, type, comm, nullptr), bad, "count"));
    EXPECT_TRUE(fails(tuttiSend(s, most / 4, type, 0, comm, nullptr), bad, "count"));
    EXPECT_TRUE(
        fails(tuttiAllReduce(s, r, 4, static_cast<tuttiDataType_t>(-1), tuttiSum, comm, nullptr), bad, "type -1"));
    EXPECT_TRUE(fails(tuttiAllReduce(s, r, 4, type, static_cast<tuttiRedOp_t>(-1), comm, nullptr), bad, "op -1"));
    // Fits size_t, but not behind the pointer.
    EXPECT_TRUE(fails(tuttiAllReduce(s, r, most / 8, type, tuttiSum, comm, nullptr), bad, ""));
  });
}

TEST_P(Arguments, NullIsFineWhereNothingIsReadOrWritten) {
  with_comm([](tuttiComm_t comm, Seat& seat) {
    const auto type = tuttiFloat32;
    EXPECT_TRUE(ok(tuttiAllReduce(nullptr, nullptr, 0, type, tuttiSum, comm, nullptr)));
    EXPECT_TRUE(ok(tuttiAllToAll(nullptr, nullptr, 0, type, comm, nullptr)));
    EXPECT_TRUE(ok(tuttiScan(nullptr, nullptr, 0, type, tuttiSum, comm, nullptr)));
    EXPECT_TRUE(ok(tuttiExScan(nullptr, nullptr, 0, type, tuttiSum, comm, nullptr)));
    float x = 3;
    float y = 0;
    const bool root = seat.rank() == 1;
    EXPECT_TRUE(ok(tuttiReduce(&x, root ? &y : nullptr, 1, type, tuttiSum, 1, comm, nullptr)));
    EXPECT_EQ(y, root ? 6 : 0);
    EXPECT_TRUE(ok(tuttiBroadcast(root ? &x : nullptr, &y, 1, type, 1, comm, nullptr)));
    EXPECT_EQ(y, 3);
    EXPECT_TRUE(ok(tuttiExScan(&x, seat.rank() == 0 ? nullptr : &y, 1, type, tuttiSum, comm, nullptr)));
  });
}

/// The blocks of a buffer of four, by index: any overlap but the documented ones is refused.
TEST_P(Arguments, OverlapIsRefusedUnlessInPlace) {
  with_comm([](tuttiComm_t comm, Seat& seat) {
    std::vector<int> x(64);
    const std::size_t n = 8;
    const auto type = tuttiInt32;
    int* const base = x.data();
    const auto mine = static_cast<std::size_t>(seat.rank()) * n;
    const auto other = n - mine;
    const auto words = "overlap";
    EXPECT_TRUE(fails(tuttiAllReduce(base, base + 1, n, type, tuttiSum, comm, nullptr), bad, words));
    EXPECT_TRUE(fails(tuttiAllReduce(base + n - 1, base, n, type, tuttiSum, comm, nullptr), bad, words));
    EXPECT_TRUE(fails(tuttiScan(base, base + 1, n, type, tuttiSum, comm, nullptr), bad, words));
    if (seat.rank() == 1) {
      EXPECT_TRUE(fails(tuttiExScan(base, base + 1, n, type, tuttiSum, comm, nullptr), bad, words));
    }
    EXPECT_TRUE(fails(tuttiAllGather(base + other, base, n, type, comm, nullptr), bad, words));
    EXPECT_TRUE(fails(tuttiAllGather(base + mine + 1, base, n, type, comm, nullptr), bad, words));
    EXPECT_TRUE(fails(tuttiReduceScatter(base, base + other + 1, n, type, tuttiSum, comm, nullptr), bad, words));
    EXPECT_TRUE(fails(tuttiAllToAll(base, base + n, n, type, comm, nullptr), bad, words));
    const int me = seat.rank();
    EXPECT_TRUE(fails(tuttiReduce(base, base + 1, n, type, tuttiSum, me, comm, nullptr), bad, words));
    EXPECT_TRUE(fails(tuttiBroadcast(base + 1, base, n, type, me, comm, nullptr), bad, words));
    EXPECT_TRUE(fails(tuttiGather(base + other, base, n, type, me, comm, nullptr), bad, words));
    EXPECT_TRUE(fails(tuttiScatter(base, base + other, n, type, me, comm, nullptr), bad, words));
    EXPECT_TRUE(ok(tuttiAllReduce(base, base + n, n, type, tuttiSum, comm, nullptr)));
    EXPECT_TRUE(ok(tuttiAllGather(base + mine, base, n, type, comm, nullptr)));
    EXPECT_TRUE(ok(tuttiReduceScatter(base, base + mine, n, type, tuttiSum, comm, nullptr)));
    EXPECT_TRUE(ok(tuttiReduceScatter(base, base, n, type, tuttiSum, comm, nullptr)));
    // What a rank does not use cannot be in the way.
    EXPECT_TRUE(ok(tuttiBroadcast(seat.rank() == 0 ? base : base + 1, seat.rank() == 0 ? base : base + 2, n, type, 0,
                                  comm, nullptr)));
  });
}

TEST_P(Arguments, HandlesThatAreNoneAreRefused) {
  with_comm([](tuttiComm_t comm, Seat& seat) {
    const auto gone = seat.init_one();
    ASSERT_NE(gone, nullptr);
    EXPECT_TRUE(ok(tuttiCommDestroy(gone)));
    int word = 0;
    for (const auto handle : {gone, reinterpret_cast<tuttiComm_t>(&word), static_cast<tuttiComm_t>(nullptr)}) {
      int value = 0;
      tuttiResult_t result = tuttiSuccess;
      EXPECT_TRUE(fails(tuttiCommDestroy(handle), bad, "comm"));
      EXPECT_TRUE(fails(tuttiCommAbort(handle), bad, "comm"));
      EXPECT_TRUE(fails(tuttiCommFinalize(handle), bad, "comm"));
      EXPECT_TRUE(fails(tuttiBarrier(handle, nullptr), bad, "comm"));
      EXPECT_TRUE(fails(tuttiCommCount(handle, &value), bad, "comm"));
      EXPECT_TRUE(fails(tuttiCommUserRank(handle, &value), bad, "comm"));
      EXPECT_TRUE(fails(tuttiCommGetAsyncError(handle, &result), bad, "comm"));
    }
    EXPECT_TRUE(fails(tuttiCommCount(comm, nullptr), bad, "NULL"));
    EXPECT_TRUE(fails(tuttiGetVersion(nullptr), bad, "NULL"));
    EXPECT_TRUE(fails(tuttiGetUniqueId(nullptr), bad, "NULL"));
    tuttiUniqueId id{};
    EXPECT_TRUE(fails(tuttiDropUniqueId(nullptr), bad, "NULL"));
    EXPECT_TRUE(fails(tuttiDropUniqueId(&id), bad, "id"));
    ASSERT_TRUE(ok(tuttiGetUniqueId(&id)));
    EXPECT_TRUE(ok(tuttiDropUniqueId(&id)));
    EXPECT_TRUE(fails(tuttiDropUniqueId(&id), bad, "not made by this process"));
  });
}

TEST_P(Arguments, OperatorsBelongToTheirCommunicatorAndType) {
  with_comm([](tuttiComm_t comm, Seat&) {
    tuttiRedOp_t op = tuttiSum;
    float half = 0.5;
    EXPECT_TRUE(
        fails(tuttiRedOpCreatePreMulSum(nullptr, &half, tuttiFloat32, tuttiScalarHostImmediate, comm), bad, "op"));
    EXPECT_TRUE(
        fails(tuttiRedOpCreatePreMulSum(&op, nullptr, tuttiFloat32, tuttiScalarHostImmediate, comm), bad, "scalar"));
    ASSERT_TRUE(ok(tuttiRedOpCreatePreMulSum(&op, &half, tuttiFloat32, tuttiScalarHostImmediate, comm)));
    double x = 4;
    EXPECT_TRUE(fails(tuttiAllReduce(&x, &x, 1, tuttiFloat64, op, comm, nullptr), bad, "float32"));
    float y = 4;
    EXPECT_TRUE(ok(tuttiAllReduce(&y, &y, 1, tuttiFloat32, op, comm, nullptr)));
    EXPECT_EQ(y, 4);
    EXPECT_TRUE(ok(tuttiRedOpDestroy(op, comm)));
    EXPECT_TRUE(fails(tuttiAllReduce(&y, &y, 1, tuttiFloat32, op, comm, nullptr), bad, "op"));
    EXPECT_TRUE(fails(tuttiRedOpDestroy(op, comm), bad, "op"));
    EXPECT_TRUE(fails(tuttiRedOpDestroy(tuttiSum, comm), bad, "op"));
  });
}

TEST(ArgumentsAlone, MemoryIsFreedOnce) {
  launch_ranks({.ranks = 1}, [](Seat&) {
    void* memory = nullptr;
    EXPECT_TRUE(fails(tuttiMemAlloc(nullptr, 8), bad, "ptr"));
    ASSERT_TRUE(ok(tuttiMemAlloc(&memory, 1 << 20)));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 4096, 0u);
    std::vector<char> zeros(1 << 20);
    EXPECT_EQ(std::memcmp(memory, zeros.data(), zeros.size()), 0);
    EXPECT_TRUE(fails(tuttiMemFree(static_cast<char*>(memory) + 64), bad, ""));
    EXPECT_TRUE(ok(tuttiMemFree(memory)));
    EXPECT_TRUE(fails(tuttiMemFree(memory), bad, ""));
    EXPECT_TRUE(fails(tuttiMemFree(&zeros), bad, ""));
    EXPECT_TRUE(ok(tuttiMemFree(nullptr)));
    EXPECT_NE(tuttiMemAlloc(&memory, std::size_t{1} << 60), tuttiSuccess);
    EXPECT_STRNE(tuttiGetLastError(nullptr), "");
  });
}

TEST(ArgumentsAlone, OfTheStartAreChecked) {
  launch_ranks({.ranks = 1}, [](Seat&) {
    tuttiUniqueId id;
    ASSERT_TRUE(ok(tuttiGetUniqueId(&id)));
    tuttiComm_t comm = nullptr;
    EXPECT_TRUE(fails(tuttiCommInitRank(nullptr, 1, id, 0), bad, "comm"));
    EXPECT_TRUE(fails(tuttiCommInitRank(&comm, 0, id, 0), bad, "nranks 0"));
    EXPECT_TRUE(fails(tuttiCommInitRank(&comm, -3, id, 0), bad, "nranks -3"));
    EXPECT_TRUE(fails(tuttiCommInitRank(&comm, 2, id, 2), bad, "rank 2"));
    EXPECT_TRUE(fails(tuttiCommInitRank(&comm, 2, id, -1), bad, "rank -1"));
    EXPECT_TRUE(fails(tuttiCommInitAll(&comm, 0, nullptr), bad, "ndev 0"));
    tuttiUniqueId zeros{};
    EXPECT_TRUE(fails(tuttiCommInitRank(&comm, 1, zeros, 0), bad, "id"));
    for (const std::size_t byte : {0, 5, 40, 90, 127}) {
      tuttiUniqueId bent = id;
      bent.internal[byte] ^= 1;
      EXPECT_TRUE(fails(tuttiCommInitRank(&comm, 1, bent, 0), bad, "id")) << "byte " << byte;
    }
    tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
    config.magic = 1;
    EXPECT_TRUE(fails(tuttiCommInitRankConfig(&comm, 1, id, 0, &config), bad, "TUTTI_CONFIG_INITIALIZER"));
    config = TUTTI_CONFIG_INITIALIZER;
    config.timeoutMs = 0;
    EXPECT_TRUE(fails(tuttiCommInitRankConfig(&comm, 1, id, 0, &config), bad, "timeoutMs"));
    config = TUTTI_CONFIG_INITIALIZER;
    config.blocking = 0;
    EXPECT_TRUE(fails(tuttiCommInitRankConfig(&comm, 1, id, 0, &config), bad, "blocking"));
    config = TUTTI_CONFIG_INITIALIZER;
    config.name = "nightshift";
    ASSERT_TRUE(ok(tuttiCommInitRankConfig(&comm, 1, id, 0, &config)));
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

/// A caller that was compiled with a later header sets nothing that this library does not know.
TEST(ArgumentsAlone, ConfigsOfOtherVersions) {
  launch_ranks({.ranks = 1}, [](Seat&) {
    struct Later {
      tuttiConfig_t known = TUTTI_CONFIG_INITIALIZER;
      int fresh = 0;
      int more = 0;
    } later;
    later.known.size = sizeof later;
    tuttiUniqueId id;
    tuttiComm_t comm = nullptr;
    ASSERT_TRUE(ok(tuttiGetUniqueId(&id)));
    later.fresh = 7;
    EXPECT_TRUE(fails(tuttiCommInitRankConfig(&comm, 1, id, 0, &later.known), bad, "does not know"));
    later.fresh = 0;
    ASSERT_TRUE(ok(tuttiCommInitRankConfig(&comm, 1, id, 0, &later.known)));
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));

    tuttiConfig_t earlier = TUTTI_CONFIG_INITIALIZER;  // one that ended after `blocking`
    earlier.size = offsetof(tuttiConfig_t, deterministic);
    earlier.timeoutMs = 0;
    ASSERT_TRUE(ok(tuttiGetUniqueId(&id)));
    ASSERT_TRUE(ok(tuttiCommInitRankConfig(&comm, 1, id, 0, &earlier)));
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

TEST(Answers, AreRight) {
  launch_ranks({.ranks = 3, .layout = Layout::pairs}, [](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    int value = -5;
    EXPECT_TRUE(ok(tuttiGetVersion(&value)));
    EXPECT_EQ(value, TUTTI_VERSION);
    EXPECT_TRUE(ok(tuttiCommCount(comm, &value)));
    EXPECT_EQ(value, 3);
    EXPECT_TRUE(ok(tuttiCommUserRank(comm, &value)));
    EXPECT_EQ(value, seat.rank());
    EXPECT_TRUE(ok(tuttiCommDevice(comm, &value)));
    EXPECT_EQ(value, -1);
    EXPECT_STREQ(tuttiGetLastError(comm), "");
    for (int code = -1; code <= tuttiNumResults; ++code)
      EXPECT_NE(tuttiGetErrorString(static_cast<tuttiResult_t>(code)), nullptr);
    float x = 1;
    ASSERT_TRUE(ok(tuttiAllReduce(&x, &x, 1, tuttiFloat32, tuttiSum, comm, nullptr)));
    const char* algorithm = nullptr;
    const char* transport = nullptr;
    EXPECT_TRUE(ok(tuttiCommLastAlgorithm(comm, &algorithm, &transport)));
    EXPECT_STRNE(algorithm, "");
    EXPECT_STREQ(transport, "inline");
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

TEST(Answers, CodeAndSentenceComeTogether) {
  launch_ranks({.ranks = 2}, [](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    tuttiResult_t code = tuttiInternalError;
    std::size_t length = 99;
    std::string text(1000, '?');
    EXPECT_TRUE(ok(tuttiGetError(comm, &code, text.data(), text.size(), &length)));
    EXPECT_EQ(code, tuttiSuccess);
    EXPECT_EQ(length, 0u);
    EXPECT_EQ(text[0], '\0');

    // Of this thread: a refused argument, which is no error of the communicator.
    ASSERT_EQ(tuttiBroadcast(&length, &length, 1, tuttiInt8, 7, comm, nullptr), bad);
    EXPECT_TRUE(ok(tuttiGetError(nullptr, &code, text.data(), text.size(), &length)));
    EXPECT_EQ(code, bad);
    EXPECT_NE(text.find("root 7"), text.npos) << text;
    EXPECT_EQ(text.find('\0'), length);
    EXPECT_TRUE(ok(tuttiGetError(comm, &code, nullptr, 0, nullptr)));
    EXPECT_EQ(code, tuttiSuccess);

    // Of the communicator: a mismatch.
    float x[2] = {};
    (void)tuttiAllReduce(x, x, seat.rank() == 0 ? 1 : 2, tuttiFloat32, tuttiSum, comm, nullptr);
    for (code = tuttiSuccess; code == tuttiSuccess;)
      ASSERT_TRUE(ok(tuttiGetError(comm, &code, text.data(), text.size(), &length)));
    EXPECT_EQ(code, tuttiInvalidUsage);
    EXPECT_NE(text.find("AllReduce count=2"), text.npos) << text;
    EXPECT_EQ(text.substr(0, length), tuttiGetLastError(comm));
    text.assign(text.size(), '?');
    EXPECT_TRUE(ok(tuttiGetError(comm, &code, text.data(), 4, &length)));
    EXPECT_EQ(text.find('\0'), 3u) << "as much as fits";
    EXPECT_GT(length, 4u);

    EXPECT_TRUE(fails(tuttiGetError(comm, nullptr, text.data(), 4, nullptr), bad, "error is NULL"));
    EXPECT_TRUE(fails(tuttiGetError(comm, &code, nullptr, 4, nullptr), bad, "text is NULL"));
    ASSERT_TRUE(seat.meet());
    (void)tuttiCommDestroy(comm);
    EXPECT_TRUE(fails(tuttiGetError(comm, &code, nullptr, 0, nullptr), bad, "comm"));
  });
}

/// What is said of a call's way: that it went through sockets.
TEST(Answers, TransportsThatAreSocketsAreCalledSo) {
  launch_ranks({.ranks = 2, .environment = {"TUTTI_TRANSPORT=socket"}}, [](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    float x = 1;
    ASSERT_TRUE(ok(tuttiAllReduce(&x, &x, 1, tuttiFloat32, tuttiSum, comm, nullptr)));
    const char* algorithm = nullptr;
    const char* transport = nullptr;
    EXPECT_TRUE(ok(tuttiCommLastAlgorithm(comm, &algorithm, &transport)));
    EXPECT_STREQ(transport, "socket");
    std::string text(4096, '?');
    EXPECT_TRUE(ok(tuttiCommExplain(comm, "all_reduce", 1, tuttiFloat32, text.data(), text.size(), nullptr)));
    EXPECT_NE(text.find("bytes, over socket:"), text.npos) << text;
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

TEST(Answers, ExplainSaysWhatIsUsed) {
  launch_ranks({.ranks = 2}, [](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    std::size_t length = 0;
    EXPECT_TRUE(ok(tuttiCommExplain(comm, "allreduce", 1 << 18, tuttiFloat32, nullptr, 0, &length)));
    std::string text(length + 1, '?');
    EXPECT_TRUE(ok(tuttiCommExplain(comm, "all_reduce", 1 << 18, tuttiFloat32, text.data(), text.size(), nullptr)));
    EXPECT_EQ(text.find('\0'), length) << "the whole text and its end";
    EXPECT_NE(text.find("Memory of tuttiMemAlloc: all_reduce of 2 ranks, 1048576 bytes, over mapped"), text.npos)
        << text;
    EXPECT_NE(text.find("Ordinary memory: "), text.npos) << text;

    // What it says is what happens.
    void* memory = nullptr;
    ASSERT_TRUE(ok(tuttiMemAlloc(&memory, 1 << 20)));
    ASSERT_TRUE(ok(tuttiAllReduce(memory, memory, 1 << 18, tuttiFloat32, tuttiSum, comm, nullptr)));
    const char* algorithm = nullptr;
    const char* transport = nullptr;
    EXPECT_TRUE(ok(tuttiCommLastAlgorithm(comm, &algorithm, &transport)));
    EXPECT_NE(text.find(std::string("\n* ") + algorithm + ' '), text.npos) << algorithm << " in " << text;
    EXPECT_TRUE(ok(tuttiMemFree(memory)));

    // Short room: as much as fits, ended by 0, and never the beginning of a letter alone.
    for (std::size_t capacity = 1; capacity < 200; ++capacity) {
      std::string part(capacity + 1, '?');
      ASSERT_TRUE(ok(tuttiCommExplain(comm, "broadcast", 3, tuttiInt8, part.data(), capacity, &length)));
      const std::size_t end = part.find('\0');
      ASSERT_LT(end, capacity);
      EXPECT_EQ(part.back(), '?');
      if (end > 0) {
        EXPECT_NE(static_cast<unsigned char>(part[end - 1]) & 0xc0U, 0xc0U);
      }
    }
    char room[8];
    EXPECT_EQ(tuttiCommExplain(comm, "sum", 8, tuttiInt8, room, sizeof room, nullptr), tuttiInvalidArgument);
    EXPECT_EQ(tuttiCommExplain(comm, nullptr, 8, tuttiInt8, room, sizeof room, nullptr), tuttiInvalidArgument);
    EXPECT_EQ(tuttiCommExplain(comm, "reduce", SIZE_MAX, tuttiInt8, room, sizeof room, nullptr), tuttiInvalidArgument);
    EXPECT_EQ(tuttiCommExplain(comm, "reduce", 8, tuttiInt8, nullptr, 8, nullptr), tuttiInvalidArgument);
    EXPECT_EQ(tuttiCommExplain(nullptr, "reduce", 8, tuttiInt8, room, sizeof room, nullptr), tuttiInvalidArgument);
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

/// All ranks in one thread without a group: only where nobody has to wait for another.
TEST(Answers, InitAllGivesEveryRank) {
  launch_ranks({.ranks = 1}, [](Seat&) {
    std::array<tuttiComm_t, 5> comms{};
    ASSERT_TRUE(ok(tuttiCommInitAll(comms.data(), 5, nullptr)));
    for (int i = 0; i < 5; ++i) {
      int rank = -1;
      EXPECT_TRUE(ok(tuttiCommUserRank(comms[i], &rank)));
      EXPECT_EQ(rank, i);
    }
    EXPECT_EQ(run_call({.count = 1000, .seed = 2}, {0, 1, 2, 3, 4}, 5, {comms.begin(), comms.end()}), "");
    for (const auto comm : comms) EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

}  // namespace
}  // namespace tutti::testing
